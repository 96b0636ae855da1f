"""``commsim workload calls`` and ``commsim workload profile``."""
