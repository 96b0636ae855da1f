"""Contention on the links of a cluster that runs, and CASSINI's shifts against it."""
