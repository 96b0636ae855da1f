"""Algorithms with parameter servers."""
