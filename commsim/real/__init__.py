"""For real: the same schedules executed by MPI and torch.distributed, beside the library's native collective."""
