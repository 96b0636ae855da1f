"""``commsim run --jobs``."""
