"""The same work put to other simulators that a user can install, side by side: ``python -m benchmarks.peers``."""
