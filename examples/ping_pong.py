"""Two ranks send a message back and forth: for ``commsim emulate -n 2 --topology star:n_hosts=2 -- python FILE``."""

from mpi4py import MPI

ROUND_TRIPS = 10
N_BYTES = 1 << 20

comm = MPI.COMM_WORLD
message = bytearray(N_BYTES)
begin = MPI.Wtime()
for _ in range(ROUND_TRIPS):
    if comm.rank == 0:
        comm.Send([message, MPI.BYTE], dest=1)
        comm.Recv([message, MPI.BYTE], source=1)
    elif comm.rank == 1:
        comm.Recv([message, MPI.BYTE], source=0)
        comm.Send([message, MPI.BYTE], dest=0)
if comm.rank == 0:
    print(f"one way: {(MPI.Wtime() - begin) / (2 * ROUND_TRIPS) * 1e6:.1f} us")
