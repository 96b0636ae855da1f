"""A module that stands in for mpi4py in the ranks of an emulation."""
