"""A program that calls what the stand-in for mpi4py has, and asserts what it returns, with 3 ranks or more."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
left, right = (rank - 1) % size, (rank + 1) % size
counts = [k + 1 for k in range(size)]


def messages():
    status = MPI.Status()
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            got = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            assert (got, 7) == (status.Get_source(), status.Get_tag())
            seen.add(got)
        assert seen == set(range(1, size))
    else:
        comm.send(rank, dest=0, tag=7)
    got = np.empty(5)
    comm.Sendrecv(np.full(5, float(rank)), right, 3, got, left, 3, status)
    assert (got == left).all()
    assert status.Get_count(MPI.DOUBLE) == 5
    again = [comm.Send_init(np.full(5, rank, "i4"), right), comm.Recv_init(here := np.empty(5, "i4"), left)]
    for _ in range(2):
        MPI.Prequest.Startall(again)
        MPI.Request.Waitall(again)
        assert (here == left).all()
    text = bytearray(b"." * 4)
    requests = [comm.Irecv([text, MPI.CHAR], left, 1), comm.Isend([b"abcd", 2, MPI.CHAR], right, 1)]
    assert MPI.Request.Waitany(requests) in (0, 1)
    MPI.Request.Waitall(requests)
    assert text == b"ab.."
    if rank == 0:
        request = comm.irecv(source=1, tag=9)
        while not (found := request.test())[0]:
            pass
        assert found[1] == "late"
        while not comm.Iprobe(source=1, tag=10, status=status):
            pass
        assert status.tag == 10
        assert comm.recv(source=1, tag=10) == "probed"
    elif rank == 1:
        comm.send("late", 0, 9)
        comm.ssend("probed", 0, 10)
    comm.Sendrecv(np.ones(1), MPI.PROC_NULL, 0, got, MPI.PROC_NULL)


def collectives():
    here = np.arange(10.0) * (rank + 1)
    there = np.empty(10)
    comm.Allreduce(here, there)
    assert (there == np.arange(10.0) * size * (size + 1) / 2).all()
    comm.Allreduce(MPI.IN_PLACE, here, op=MPI.MAX)
    assert (here == np.arange(10.0) * size).all()
    gathered = np.empty((size, 2), "i4")
    comm.Allgather(np.array([rank, -rank], "i4"), gathered)
    assert (gathered == np.arange(size)[:, None] * [1, -1]).all()
    unequal = np.empty(sum(counts))
    comm.Allgatherv(np.full(rank + 1, float(rank)), [unequal, counts])
    assert (unequal == np.repeat(np.arange(size), counts)).all()
    blocks = np.empty(size, "i4")
    comm.Alltoall(np.arange(size, dtype="i4") + 100 * rank, blocks)
    assert (blocks == np.arange(size) * 100 + rank).all()
    sent = [(rank + k) % 3 for k in range(size)]
    received = np.empty(sum(sent))
    comm.Alltoallv([np.full(sum(sent), float(rank)), sent], [received, sent])
    assert (received == np.repeat(np.arange(size), sent)).all()
    whole = np.empty(sum(counts)) if rank == 0 else None
    comm.Gatherv(np.full(rank + 1, float(rank)), [whole, counts])
    mine = np.empty(rank + 1)
    comm.Scatterv([whole, counts], mine)
    assert (mine == rank).all()
    block = np.empty(2)
    comm.Reduce_scatter_block(np.arange(2.0 * size), block)
    assert (block == np.arange(2.0 * size)[2 * rank : 2 * rank + 2] * size).all()
    comm.Reduce_scatter(np.ones(sum(counts)), mine, counts)
    assert (mine == size).all()
    comm.Scan(np.full(3, float(rank)), there[:3])
    assert (there[:3] == rank * (rank + 1) / 2).all()
    request = comm.Iallreduce(np.ones(4), there[:4])
    request.Wait()
    assert (there[:4] == size).all()

    def join(part, target, datatype):
        np.frombuffer(target, "f8")[:] = 10 * np.frombuffer(part, "f8") + np.frombuffer(target, "f8")

    digits = np.empty(1)
    comm.Allreduce(np.full(1, rank + 1.0), digits, op=MPI.Op.Create(join, commute=False))
    if size == 3:
        assert digits[0] == 123


def objects():
    assert comm.bcast({"a": rank}, root=1) == {"a": 1}
    assert comm.allgather("x" * rank) == ["x" * k for k in range(size)]
    assert comm.gather(rank, root=2) == (list(range(size)) if rank == 2 else None)
    assert comm.scatter([k * k for k in range(size)] if rank == 0 else None) == rank * rank
    assert comm.alltoall([(rank, k) for k in range(size)]) == [(k, rank) for k in range(size)]
    assert comm.allreduce(rank) == size * (size - 1) // 2
    assert comm.allreduce((rank % 2, rank), op=MPI.MAXLOC) == (1, 1)
    assert comm.reduce([rank], root=size - 1) == (list(range(size)) if rank == size - 1 else None)
    assert comm.scan([rank]) == list(range(rank + 1))
    assert comm.exscan([rank]) == (list(range(rank)) or None)


def communicators():
    part = comm.Split(rank % 2, -rank)
    assert part.rank == part.size - 1 - rank // 2
    assert part.allreduce(1) == part.size
    assert comm.Split(MPI.UNDEFINED if rank else 0) == MPI.COMM_NULL or rank == 0
    again = comm.Dup()
    again.Barrier()
    few = comm.Get_group().Incl([0, 2])
    if rank in (0, 2):
        assert comm.Create_group(few).allgather(rank) == [0, 2]
    grid = comm.Create_cart([size], periods=[True])
    assert grid.Shift(0, 1) == (left, right)
    assert comm.Create_cart([size]).Shift(0, 1)[1] == (MPI.PROC_NULL if rank == size - 1 else right)
    assert MPI.Compute_dims(12, 2) == [4, 3]


messages()
collectives()
objects()
communicators()
comm.Barrier()
if rank == 0:
    print("all well at", MPI.Wtime())
