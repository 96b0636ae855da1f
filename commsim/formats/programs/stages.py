"""Fences of programs: computations of no time that end a stage of their rank.

A fence of a schedule waits until messages have arrived at their other end, which no rank can know. Where programs are
executed it waits for what the rank knows: that its sends have left and its receives are complete. Marked with the
number of the stage that begins, it is a fence again where programs become a schedule.

What the messages of programs wait for: other messages, and joins, which are what takes no time itself.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from commsim.core.errors import InputError

from .operations import CALC, RECV, Message, Op, Programs, deadlock, sorted_after

# Stages are numbered below this, so that a number fits where formats leave room for one.
MAX_STAGE = 2**24


def stages_of(rank: int, ops: tuple[Op, ...]) -> list[int]:
    """Stage of every operation of a rank: the largest number of the fences that it comes after.

    Raises
    ------
    InputError
        If operations wait for each other, or a fence ends a stage that is later than the one it begins.
    """
    stage = [op.stage for op in ops]
    if not any(stage):
        return stage
    waits = [{*op.after, *op.after_start} for op in ops]
    order = sorted_after(waits)
    if order is None:
        raise deadlock(waits, lambda i: f"rank {rank}'s operation {i}")
    for i in order:
        before = max((stage[j] for j in (*ops[i].after, *ops[i].after_start)), default=0)
        if ops[i].stage and before >= ops[i].stage:
            raise InputError(f"rank {rank}: a fence begins stage {ops[i].stage}, and waits for stage {before}")
        stage[i] = max(stage[i], before)
    return stage


def cut_into_stages(programs: Programs, messages: list[Message]) -> tuple[Programs, list[list[int]]]:
    """Take out what fences say: no operation waits for another stage any more.

    Returns
    -------
    Programs, list of list of int
        Without dependencies between stages, and the stage of every operation.

    Raises
    ------
    InputError
        If the two ends of a message are in different stages, or a rank's stages contradict each other.
    """
    stages = [stages_of(rank, ops) for rank, ops in enumerate(programs.ranks)]
    for m in messages:
        ends = stages[m.src][m.send], stages[m.dst][m.recv]
        if ends[0] != ends[1]:
            raise InputError(
                f"rank {m.src} sends with tag {m.tag} in stage {ends[0]} what rank {m.dst} receives in stage {ends[1]}"
            )
    cut = zip(programs.ranks, stages, strict=True)
    return Programs(tuple(_cut(ops, stage) if any(stage) else ops for ops, stage in cut)), stages


def _cut(ops: tuple[Op, ...], stage: list[int]) -> tuple[Op, ...]:
    def same(i: int, waited: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(j for j in waited if stage[j] == stage[i] and not ops[j].stage)

    return tuple(
        Op(CALC, 0) if op.stage else replace(op, after=same(i, op.after), after_start=same(i, op.after_start))
        for i, op in enumerate(ops)
    )


def fenced(ops: list[Op], stage: list[int]) -> tuple[Op, ...]:
    """Put fences between the stages of a rank.

    Parameters
    ----------
    ops : list of Op
        Without fences; what they wait for in other stages is left to the fences.
    stage : list of int
        Of each operation.
    """
    if not any(stage):
        return tuple(ops)
    members: dict[int, list[int]] = {}
    for i, s in enumerate(stage):
        members.setdefault(s, []).append(i)
    fence = {s: len(ops) + k for k, s in enumerate(sorted(members.keys() - {0}))}
    out = []
    for op, s in zip(ops, stage, strict=True):
        same_stage = tuple(j for j in op.after if stage[j] == s)
        out.append(replace(op, after=(fence[s], *same_stage) if s else same_stage))
    earlier: list[int] = members.get(0, [])
    for s in fence:
        out.append(Op(CALC, 0, after=tuple(earlier), stage=s))
        earlier = members[s]
    return tuple(out)


# A message or a join by number, and whether it must have arrived (or else only left).
Token = tuple[int, bool]
Reductions = dict[tuple[int, int], int]


class Waits:
    """Messages and, numbered after them, joins, with all that each of them waits for.

    Parameters
    ----------
    programs : Programs
        Whose messages they are.
    messages : list of Message
        As matched.
    reductions : dict
        Of :func:`find_reductions`.
    eager : bool
        Whether messages come before the receive that takes them has begun.
    """

    def __init__(self, programs: Programs, messages: list[Message], reductions: Reductions, eager: bool) -> None:
        self._ranks = programs.ranks
        self.op_of: list[tuple[int, int]] = []
        """Rank and operation of each join."""
        self._first = len(messages)
        self._finish: list[dict[int, Token]] = [{} for _ in self._ranks]
        self._start: list[dict[int, Token]] = [{} for _ in self._ranks]
        for m, message in enumerate(messages):
            self._finish[message.src][message.send] = (m, False)
            self._finish[message.dst][message.recv] = (m, True)
        for rank, ops in enumerate(self._ranks):
            for i in {j for op in ops for j in op.after_start}:
                self._start[rank][i] = self._join(rank, i)
            for i, op in enumerate(ops):
                if op.kind == CALC and not op.size:
                    self._finish[rank][i] = self._join(rank, i)
        late: dict[Token, Token] = {}
        if eager:
            for rank, ops in enumerate(self._ranks):
                for i, op in enumerate(ops):
                    if op.kind == RECV and (op.after or op.after_start):
                        arrival = self._finish[rank][i]
                        self._finish[rank][i] = self._join(rank, i)
                        late[self._finish[rank][i]] = arrival
        for (rank, recv), calc in reductions.items():
            self._finish[rank][calc] = self._finish[rank][recv]
        self.of_send = [self._of(m.src, self._ranks[m.src][m.send]) for m in messages]
        self.of_recv = [set() if eager else self._of(m.dst, self._ranks[m.dst][m.recv]) for m in messages]
        self.of_join = [self._of(rank, self._ranks[rank][i]) for rank, i in self.op_of]
        for join, arrival in late.items():
            self.of_join[join[0] - self._first].add(arrival)

    def every(self) -> list[set[int]]:
        """Return what each message and join waits for, by number."""
        messages = [{n for n, _ in a | b} for a, b in zip(self.of_send, self.of_recv, strict=True)]
        return messages + [{n for n, _ in waited} for waited in self.of_join]

    def _join(self, rank: int, i: int) -> Token:
        self.op_of.append((rank, i))
        return self._first + len(self.op_of) - 1, True

    def _of(self, rank: int, op: Op) -> set[Token]:
        return {self._finish[rank][j] for j in op.after} | {self._start[rank][j] for j in op.after_start}


def find_reductions(programs: Programs) -> Reductions:
    """Find the computations that follow one receive and stand between it and all else: (rank, receive) -> computation.

    Raises
    ------
    InputError
        If there is any other computation.
    """
    reductions: Reductions = {}
    for rank, ops in enumerate(programs.ranks):
        followers: dict[int, list[int]] = defaultdict(list)
        for i, op in enumerate(ops):
            for j in (*op.after, *op.after_start):
                followers[j].append(i)
        for i, op in enumerate(ops):
            if op.kind != CALC or not op.size:
                continue
            recv = op.after[0] if len(op.after) == 1 and not op.after_start else -1
            if recv < 0 or ops[recv].kind != RECV or not ops[recv].size or len(followers[recv]) > 1:
                raise InputError(
                    f"rank {rank}: operation {i} computes, which a schedule cannot hold; read it as a workload"
                )
            reductions[rank, recv] = i
    return reductions
