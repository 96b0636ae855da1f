"""Cluster policies, each reduced to how its paper shares and places GPUs."""
