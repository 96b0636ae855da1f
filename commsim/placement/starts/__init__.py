"""Start times, CASSINI's time shifts: circles of demand, link scores, affinity graph, windows, searches."""
