"""What is measured: programs for mpirun, and what commsim itself costs."""
