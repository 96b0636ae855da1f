"""How fast commsim itself is, measured by pytest-benchmark on one core."""
