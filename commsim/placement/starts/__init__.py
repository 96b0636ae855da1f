"""Start times: achieved phases, free windows, and searches over several links."""
