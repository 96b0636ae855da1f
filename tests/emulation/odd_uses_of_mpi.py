"""A program of 4 ranks that uses MPI in rare ways, and asserts what the standard and mpi4py say of them.

``mpiexec -n 4 python odd_uses_of_mpi.py`` runs it with a real library. Contents are not looked at, so that it also runs
where no data is moved: only sources, tags, lengths, errors, and objects, which are always moved.
"""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
left, right = (rank - 1) % size, (rank + 1) % size


def error_class(call, *given):
    """Return the class of the error that a call raises."""
    try:
        call(*given)
    except MPI.Exception as error:
        return error.Get_error_class()
    return None


def null_requests():
    """What was waited for is null: it has no result and no status any more."""
    status, room = MPI.Status(), np.empty(5)
    request = comm.Irecv(room, left, 1)
    comm.Send(np.empty(3), right, 1)
    while not request.Get_status(status):
        pass
    assert (status.source, status.tag, status.Get_count(MPI.DOUBLE)) == (left, 1, 3)
    assert request
    request.Wait(status)
    assert (status.source, status.tag, status.Get_count(MPI.DOUBLE)) == (left, 1, 3)
    request.Wait(status)
    assert (status.source, status.tag, status.count) == (MPI.ANY_SOURCE, MPI.ANY_TAG, 0)
    assert request == MPI.REQUEST_NULL
    request = comm.irecv(source=left, tag=2)
    comm.send([rank], right, 2)
    assert request.wait() == [left]
    assert request.wait() is None
    assert request.test() == (True, None)
    assert MPI.Request.waitall([request, comm.isend(1, MPI.PROC_NULL)]) == [None, None]
    assert MPI.Request.Waitany([request]) == MPI.UNDEFINED
    assert MPI.Request.Waitsome([request]) is None
    assert MPI.Request.Testsome([request]) is None


def no_rank():
    """Messages to and from no rank do not look at the memory."""
    status = MPI.Status()
    comm.Send(5, MPI.PROC_NULL)
    comm.Send(np.arange(16.0).reshape(4, 4)[:, 1], MPI.PROC_NULL)
    comm.Recv(b"abc", MPI.PROC_NULL, 3, status)
    assert (status.source, status.tag, status.count) == (MPI.PROC_NULL, MPI.ANY_TAG, 0)
    request = comm.Irecv(b"abc", MPI.PROC_NULL)
    request.Wait(status)
    assert status.source == MPI.PROC_NULL
    assert comm.recv(source=MPI.PROC_NULL) is None


def wrong_values():
    """Ranks, roots and tags out of range are errors of their class where they are called, not a deadlock later."""
    room = np.zeros(2)
    assert error_class(comm.Send, room, 99) == 6
    assert error_class(comm.Recv, room, 55) == 6
    assert error_class(comm.Bcast, room, 9) == 7
    assert error_class(comm.bcast, 1, -2) == 7
    assert error_class(comm.Send, room, right, -4) == 4
    assert error_class(comm.Recv, room, left, -9) == 4
    assert comm.Get_attr(MPI.TAG_UB) >= 32767


def some_at_a_time():
    rooms = [np.empty(1) for _ in range(size)]
    requests = [comm.Irecv(rooms[source], source, 4) for source in range(size)]
    sent = [comm.Isend(np.empty(1), to, 4) for to in range(size)]
    seen, left_over = [], 2 * size
    while left_over:
        places = MPI.Request.Testsome(requests + sent)
        seen += places
        left_over -= len(places)
    assert sorted(seen) == list(range(2 * size))
    assert MPI.Request.Testsome(requests) is None


def cancelled():
    status = MPI.Status()
    request = comm.Irecv(np.empty(3), left, 77)
    request.Cancel()
    request.Wait(status)
    assert status.Is_cancelled()
    came = comm.Irecv(np.empty(3), left, 78)
    comm.Send(np.empty(2), right, 78)
    comm.Barrier()
    came.Wait(status)
    assert not status.Is_cancelled()
    assert status.Get_count(MPI.DOUBLE) == 2


def places_and_buffers():
    """A count with a place in a message, buffered sends, groups of ranges, and sides of a grid."""
    status, room = MPI.Status(), np.zeros(6)
    comm.Sendrecv([np.arange(6.0), (2, 3), MPI.DOUBLE], right, 0, [room, (2, 1), MPI.DOUBLE], left, 0, status)
    assert status.Get_count(MPI.DOUBLE) == 2
    assert not room[[0, 3, 4, 5]].any()
    MPI.Attach_buffer(bytearray(300_000))
    comm.Bsend(np.empty(30_000), right, 1)
    comm.Recv(np.empty(30_000), left, 1)
    comm.bsend(rank, right, 2)
    assert comm.recv(source=left, tag=2) == left
    MPI.Detach_buffer()
    group = comm.Get_group()
    assert group.Range_incl([(0, 2, 2), (3, 1, -2)]).Translate_ranks(None, group) == [0, 2, 3, 1]
    assert group.Range_excl([(0, 3, 2)]).Translate_ranks(None, group) == [1, 3]
    total = np.full(2, 3.0)
    MPI.SUM.Reduce_local(np.ones(2), total)
    assert total.tolist() == [4.0, 4.0]
    grid = comm.Create_cart([2, 2], periods=[True, False])
    assert repr(grid.Get_topo()[1]) == "[1, 0]"
    assert grid.Get_cart_rank([3, 1]) == 3
    assert MPI.Datatype.fromcode("d") == MPI.DOUBLE


for part in (null_requests, no_rank, wrong_values, some_at_a_time, cancelled, places_and_buffers):
    part()
    comm.Barrier()
if rank == 0:
    print("all well")
