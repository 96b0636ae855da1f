"""Pick the cheapest engine whose known error is small enough."""
