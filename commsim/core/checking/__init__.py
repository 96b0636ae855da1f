"""Proofs that a schedule does what its operation promises, on symbols and on numbers."""
