"""Links of packet runs: queues, marks, pauses, losses, flaps, the ways of packets, and the clock."""
