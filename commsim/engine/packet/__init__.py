"""The packet engine: packets, queues, losses and retransmissions, in int64 picoseconds."""
