"""``commsim reproduce`` and ``commsim workload systems``."""
