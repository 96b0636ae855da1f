"""Drawn programs of mpi4py that cannot be deadlocked: rounds of messages, collectives and sleeps; what each rank saw.

A program is drawn as data first, the same for all ranks: each takes its part of every round.
"""

import random
import time

import numpy as np

SIZES = (0, 1, 100, 65536, 65537, 300_000)
KINDS = ("Isend", "Isend", "Issend", "isend")
HOW = ("Waitall", "Waitany", "Waitsome", "Test", "Testall", "wait")


def draw(seed, n_ranks, n_rounds=12):
    """Return the rounds of a program: (kind, what each rank does before, and the messages or the collective)."""
    draws = random.Random(seed)
    rounds = []
    for number in range(n_rounds):
        sleeps = [draws.choice((0, 0, 0, 1e-7, draws.random() * 1e-5)) for _ in range(n_ranks)]
        kind = draws.choice(("messages", "messages", "messages", "ping", "collective", "both"))
        messages = []
        for _ in range(draws.randint(1, 3 * n_ranks)):
            src, dst = draws.randrange(n_ranks), draws.randrange(n_ranks)
            messages.append((src, dst, draws.choice(SIZES), draws.choice((0, 0, 7)), draws.choice(KINDS)))
        from_any = [draws.random() < 0.3 for _ in range(n_ranks)]
        how = [draws.choice(HOW) for _ in range(n_ranks)]
        collective = draws.choice(("Barrier", "Allreduce", "Bcast", "Allgather", "Alltoallv", "allgather", "Split"))
        pair = draws.sample(range(n_ranks), 2)
        rounds.append((number, kind, sleeps, messages, from_any, how, collective, pair, draws.choice(SIZES)))
    return rounds


def run(rounds, saw):
    """Run a rank's part; `saw` gets a list of what it received, and when, for each rank."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    mine = saw[comm.rank] = []
    for number, kind, sleeps, messages, from_any, how, collective, pair, size in rounds:
        if sleeps[comm.rank]:
            time.sleep(sleeps[comm.rank])
        begun = []
        if kind == "both":
            block, total = np.full(size // 8 + 1, float(comm.rank)), np.empty(size // 8 + 1)
            begun = [comm.Iallreduce(block, total)]
        if kind in ("messages", "both"):
            _messages(MPI, comm, messages, from_any[comm.rank], how[comm.rank], 10 * number, mine)
        elif kind == "ping":
            _ping(comm, pair, size, mine)
        else:
            _collective(comm, collective, size, mine)
        if begun:
            begun[0].Wait()
            mine.append(total.tobytes())
        mine.append(MPI.Wtime())


def overlapping(saw):
    """Let two messages to the same rank overlap, the second later each time."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    mine = saw[comm.rank] = []
    for k in range(4):
        if comm.rank == 2:
            requests = [comm.Irecv(bytearray(60_000), source) for source in (0, 1)]
            MPI.Request.Waitall(requests)
        else:
            time.sleep(comm.rank * k * 1e-6)
            comm.Send(bytes(60_000), 2)
        mine.append(MPI.Wtime())
        comm.Barrier()


def _messages(MPI, comm, messages, from_any, how, tag, mine):
    """All messages of a round at once: receives first, in the order of the messages, of one kind for each rank."""
    me, requests, rooms = comm.rank, [], []
    for src, dst, _, its_tag, _ in messages:
        if dst == me:
            rooms.append(room := bytearray(max(SIZES) + 200))
            source, tag_of = (MPI.ANY_SOURCE, MPI.ANY_TAG) if from_any else (src, tag + its_tag)
            requests.append(comm.Irecv(room, source, tag_of))
    for src, dst, size, its_tag, kind in messages:
        if src == me:
            data = bytes([me]) * size
            if kind == "isend":
                requests.append(comm.Isend([data, size, MPI.BYTE], dst, tag + its_tag))
            else:
                requests.append(getattr(comm, kind)(data, dst, tag + its_tag))
    _finish(MPI, requests, how, mine)
    mine.extend(bytes(room[:1]) + bytes([room.count(room[:1]) % 251]) for room in rooms)
    comm.Barrier()


def _finish(MPI, requests, how, mine):
    status = [MPI.Status() for _ in requests]
    if how == "Waitall":
        MPI.Request.Waitall(requests, status)
        mine.extend((one.source, one.tag, one.Get_count(MPI.BYTE)) for one in status)
    elif how == "Testall":
        while not MPI.Request.Testall(requests):
            mine.append(MPI.Wtime())
    elif how == "Test":
        for request in requests:
            while not request.Test():
                pass
            mine.append(MPI.Wtime())
    elif how == "wait":
        for request in requests:
            request.wait()
            mine.append(MPI.Wtime())
    else:
        left = len(requests)
        while left:
            places = getattr(MPI.Request, how)(requests)
            mine.append((places, MPI.Wtime()))
            left -= 1 if how == "Waitany" else len(places)


def _ping(comm, pair, size, mine):
    """Some messages back and forth between two ranks."""
    if comm.rank in pair:
        other, room = pair[1 - pair.index(comm.rank)], bytearray(size)
        for _ in range(3):
            if comm.rank == pair[0]:
                comm.Send(bytes([comm.rank]) * size, other, 5)
                comm.Recv(room, other, 5)
            else:
                comm.Recv(room, other, 5)
                comm.Send(bytes([comm.rank]) * size, other, 5)
        mine.append(bytes(room[:1]))


def _collective(comm, name, size, mine):
    n = size // 8 + 1
    here, there = np.full(n, comm.rank + 0.5), np.empty(n)
    if name == "Allreduce":
        comm.Allreduce(here, there)
    elif name == "Bcast":
        comm.Bcast(here, 1)
        there = here
    elif name == "Allgather":
        there = np.empty(n * comm.size)
        comm.Allgather(here, there)
    elif name == "Alltoallv":
        counts = [(comm.rank + k) % 3 for k in range(comm.size)]
        there = np.empty(sum(counts))
        comm.Alltoallv([np.full(sum(counts), float(comm.rank)), counts], [there, counts])
    elif name == "allgather":
        there = np.array(comm.allgather(comm.rank))
    elif name == "Split":
        part = comm.Split(comm.rank % 2, -comm.rank)
        there = np.array([part.rank, part.allreduce(comm.rank)])
    else:
        comm.Barrier()
        there = np.empty(0)
    mine.append(there.tobytes())
