"""Measured exchanges of experts beside our predictions: ``python -m benchmarks.experts --data DIR``."""
