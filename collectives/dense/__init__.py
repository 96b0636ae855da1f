"""Algorithms for dense data: every participant sends every byte."""
