"""Machines: their parts, and what is known of their hardware."""
