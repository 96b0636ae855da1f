"""By how much sums that should be equal may differ: what is less is rounding."""

FULL = 1.0 + 1e-11
"""Part of a resource that may be asked for at once; what is above 1 is rounding."""

SLACK = 2**14
"""Ticks by which intervals may overlap, 2^-47 of the run: rounding of the end of one and of the start of the next."""
