"""What waits for what: the data order of a schedule."""
