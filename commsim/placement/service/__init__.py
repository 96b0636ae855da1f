"""The placement service: HTTP for schedulers."""
