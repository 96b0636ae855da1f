"""``commsim expect`` and ``commsim watch``."""
