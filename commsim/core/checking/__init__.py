"""Proofs that a schedule meets the postcondition of its operation, on symbols."""
