"""``commsim calibrate``, ``validate``, ``compare``, ``fit`` and ``testbed``."""
