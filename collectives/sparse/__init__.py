"""Algorithms for sparse data: only blocks or elements that are not zero are sent."""
