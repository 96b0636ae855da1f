"""What the messages of programs wait for: other messages, and joins, which are what takes no time itself."""

from __future__ import annotations

from collections import defaultdict

from commsim.core.errors import InputError

from .operations import CALC, RECV, MatchedMessage, Programs, RankOperation

# A message or a join by number, and whether it must have arrived (or else only left).
Token = tuple[int, bool]
Reductions = dict[tuple[int, int], int]


class MessageWaits:
    """Messages and, numbered after them, joins, with all that each of them waits for.

    Parameters
    ----------
    programs : Programs
        Programs with the messages.
    messages : list of MatchedMessage
        Messages as matched.
    reductions : dict
        Reductions from :func:`find_reductions`.
    eager : bool
        Whether messages come before the receive that takes them has begun.
    """

    def __init__(self, programs: Programs, messages: list[MatchedMessage], reductions: Reductions, eager: bool) -> None:
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

    def _of(self, rank: int, op: RankOperation) -> set[Token]:
        return {self._finish[rank][j] for j in op.after} | {self._start[rank][j] for j in op.after_start}


def find_reductions(programs: Programs) -> Reductions:
    """Find the computations that follow one receive and come between it and all else: (rank, receive) -> computation.

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
