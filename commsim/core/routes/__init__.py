"""Routing: which links the messages between two nodes take."""
