"""Rings event by event, in memory for their wires and not for their transfers."""
