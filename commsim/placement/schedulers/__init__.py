"""Doors to schedulers: a service, and the files that they read and write."""
