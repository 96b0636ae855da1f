"""Processor time and memory by number of ranks, and the queues that the flow engine could have."""
