"""Figures of packets: queues, ways and messages over time."""
