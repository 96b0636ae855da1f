"""``commsim sweep`` with ``commsim sweep cheapest``."""
