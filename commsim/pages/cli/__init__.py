"""``commsim report``, ``plot``, ``diff`` and ``trace``."""
