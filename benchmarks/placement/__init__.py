"""Placement: start times and estimates against simulations, and first candidates against the best of all."""
