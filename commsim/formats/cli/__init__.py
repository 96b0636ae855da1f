"""``commsim topo``, ``schedule`` and ``workload`` ``import`` and ``export``."""
