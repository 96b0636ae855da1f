"""Mean times of a collective by size, as the OSU benchmarks print them: python osu_of_collectives.py NAME SIZES."""

import sys

import numpy as np
from mpi4py import MPI

REPEATS = 3
comm, (name, *sizes) = MPI.COMM_WORLD, sys.argv[1:]
n_parts = {"Allgather": (1, comm.size), "Alltoall": (comm.size, comm.size), "Bcast": (1, 0)}[name]
for size in map(int, sizes):
    buffers = [[np.empty(n * size, np.uint8), size, MPI.BYTE] for n in n_parts if n]
    for _ in range(REPEATS):
        comm.Barrier()
        before = MPI.Wtime()
        getattr(comm, name)(*buffers)
        took = MPI.Wtime() - before
    mean = comm.allreduce(took) / comm.size
    if comm.rank == 0:
        print(size, repr(mean), flush=True)
