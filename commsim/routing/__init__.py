"""Which links the messages between two nodes take; trees of aggregating switches; metrics of a network."""
