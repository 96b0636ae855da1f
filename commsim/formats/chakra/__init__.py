"""Chakra execution traces: graphs of computations and communications, one file per rank, read by ASTRA-sim."""
