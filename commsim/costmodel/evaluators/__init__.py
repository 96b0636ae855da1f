"""Evaluators of cost models in Python, JavaScript and C: each one file without dependencies, to be copied."""
