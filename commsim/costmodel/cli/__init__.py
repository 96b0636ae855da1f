"""``commsim export``."""
