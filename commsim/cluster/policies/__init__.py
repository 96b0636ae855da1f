"""Policies, each in the essence of how its paper shares and places GPUs; one file each."""
