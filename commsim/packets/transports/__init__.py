"""Transports of packet runs: when a sender may send, which way each packet goes, and what answers change."""
