"""``commsim advise``, ``bound`` and ``synthesize``."""
