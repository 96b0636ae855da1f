"""Timelines of runs: who sent what when, and on which links."""
