"""Figures of fabrics: queues, ways and messages of packets over time; racks and tiers of large networks."""
