"""Patterns of messages between hosts, and how a fabric carried them."""
