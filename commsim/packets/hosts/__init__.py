"""Hosts of packet runs: senders, receivers, and the messages that they exchange."""
