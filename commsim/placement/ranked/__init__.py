"""Placements in order, with what the user should know of them, and what new jobs cost in each."""
