"""From programs to the graph of an iteration: computations, and messages between two ranks."""

from __future__ import annotations

from commsim.workload.task_graph import Graph, Task

from .matching import deadlock, match, sorted_after
from .operations import CALC, SEND, Op, Programs


def graph_of(programs: Programs) -> Graph:
    """Turn programs into tasks: computations occupy ``rank0.cpu0``, messages ``rank0.nic0`` of who sends.

    Messages may come before they are waited for, as those of LogGOPSim.

    Raises
    ------
    InputError
        If there is nothing to do, sends and receives do not match, or ranks wait for each other.
    """
    ops = list(programs.every())
    finish = {(rank, i): n for n, (rank, i, _) in enumerate(ops)}
    started = sorted({(rank, j) for rank, _, op in ops for j in op.after_start})
    start = {place: len(ops) + n for n, place in enumerate(started)}  # an operation's start is a task of its own
    messages = match(programs)
    message = {(m.dst, m.recv): finish[m.src, m.send] for m in messages}

    def before(rank: int, op: Op) -> set[int]:
        return {finish[rank, j] for j in op.after} | {start[rank, j] for j in op.after_start}

    waits = [before(rank, op) | ({message[rank, i]} if (rank, i) in message else set()) for rank, i, op in ops]
    for m in messages:  # of a message's receive, fences hold for the message itself
        there = programs.ranks[m.dst]
        waits[finish[m.src, m.send]] |= {finish[m.dst, j] for j in there[m.recv].after if there[j].stage}
    waits += [before(rank, programs.ranks[rank][i]) for rank, i in started]
    order = sorted_after(waits)
    if order is None:
        raise deadlock(
            waits, lambda n: "rank {}'s operation {}".format(*(ops[n][:2] if n < len(ops) else started[n - len(ops)]))
        )
    place = {n: k for k, n in enumerate(order)}
    tasks = []
    for n in order:
        after = tuple(sorted(place[w] for w in waits[n]))
        if n < len(ops):
            tasks.append(_task(*ops[n], after))
        else:
            rank, i = started[n - len(ops)]
            tasks.append(Task(f"rank{rank}.{i}.start", (), after=after))
    return Graph(tuple(tasks))


def _task(rank: int, i: int, op: Op, after: tuple[int, ...]) -> Task:
    name = f"rank{rank}.{i}"
    if op.kind == SEND:
        return Task(name, (f"rank{rank}.nic{op.nic}",), 0.0, "send", (rank, op.peer), float(op.size), after=after)
    if op.kind == CALC and op.size:
        return Task(name, (f"rank{rank}.cpu{op.cpu}",), op.size / 1e9, after=after)
    return Task(name, (), after=after)
