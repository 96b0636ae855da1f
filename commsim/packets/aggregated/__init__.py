"""Jobs that switches aggregate, packet by packet: workers, aggregators, servers, and what becomes of the values."""
