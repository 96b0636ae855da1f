"""``commsim traffic``."""
