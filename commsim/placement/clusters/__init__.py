"""Cluster simulation over weeks: job arrivals, queueing, execution and link sharing."""
