"""Programs for mpirun: native, ours and predicted."""
