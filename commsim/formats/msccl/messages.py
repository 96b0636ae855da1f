"""The messages and local copies that steps make, and the order that they impose on each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from commsim.core.errors import InputError
from commsim.core.schedule import COPY, INPUT, REDUCE

from .algorithm import LATER, SENDING, UNLESS_AROUND, Addresses, Algorithm, Edge, Where
from .execution import ExecutedStep, Place, execute

MAX_EDGES = 2**22


@dataclass(slots=True)
class TransferDraft:
    """A transfer in the making; its mark is the stage and the hop that the file gives it."""

    src: int
    dst: int
    source: Where
    target: Where
    count: int
    op: int
    channel: int
    mark: tuple[int, int] = (-1, -1)


@dataclass(slots=True)
class _Chunk:
    """Who touched a chunk: the last writers, whether all of them add, what they all come after, and readers since."""

    writers: list[int] = field(default_factory=list)
    adds: bool = False
    fresh: bool = True
    base: list[tuple[int, int]] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)


class Transfers:
    """Executes an algorithm and collects its transfers.

    Parameters
    ----------
    algorithm : Algorithm
        Checked.
    addresses : Addresses
        Addresses of the algorithm; takes scratch memory for sums that are sent on and not kept.
    backwards : bool
        Whether thread blocks go in reverse order, where several can go on.
    """

    def __init__(self, algorithm: Algorithm, addresses: Addresses, backwards: bool = False) -> None:
        self._algorithm, self._addresses = algorithm, addresses
        self.moves: list[TransferDraft] = []
        self.edges: set[Edge] = set()
        """What the data asks for."""
        self.fences: set[tuple[int, int]] = set()
        """Dependencies that no data asks for: earlier, later."""
        self.connections: list[list[int]] = []
        self.names: list[tuple[Place, int]] = []
        """Step that each transfer begins with, and its number in it: the same in any order of the steps."""
        self._memory: dict[tuple[int, int, int], _Chunk] = defaultdict(_Chunk)
        self._of_step: dict[Place, list[int]] = {}
        self._open: dict[Place, int] = {}  # messages under way, by the step that sent them
        self._waits: dict[tuple[int, int], list[Place]] = defaultdict(list)  # of empty steps, by thread block
        connections: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for event in execute(algorithm, backwards):
            self._step(event, connections)
        for rank in range(len(algorithm.gpus)):
            for source, target, count in addresses.copies_back(rank):
                self._local(rank, source, target, count, COPY, ((rank, -1, -1), 0))
        self.connections = list(connections.values())

    def _step(self, event: ExecutedStep, connections: dict[tuple[int, int, int], list[int]]) -> None:
        step, (rank, block, _) = event.step, event.place
        waits = self._waits[rank, block]
        if step.wait is not None:
            waits.append((rank, *step.wait))
        if step.kind == "nop":
            self._of_step[event.place] = []
            return
        taken: list[int] = []
        self._of_step[event.place] = taken
        held = self._addresses.src(rank, step) if step.kind not in ("r", "rcs") else (INPUT, 0)
        written = self._addresses.dst(rank, step) if step.kind not in ("s", "rrs") else held
        if step.kind == "rrs":
            written = self._addresses.take(step.count)
        if step.kind in ("rrc", "rrcs", "rrs") and held != written:
            taken.append(self._local(rank, held, written, step.count, COPY, (event.place, 0)))
        if step.kind in ("cpy", "re", "ra"):
            op = COPY if step.kind == "cpy" else REDUCE
            taken.append(self._local(rank, held, written, step.count, op, (event.place, 0), (step.stage, step.hop)))
        if event.send is not None:
            m = self._open.pop(event.send)
            self.moves[m].target, self.moves[m].op = written, COPY if step.kind in ("r", "rcs") else REDUCE
            self._write(m, rank, written, step.count)
            taken.append(m)
        if step.kind in SENDING:
            peer, channel = (
                self._algorithm.gpus[rank].blocks[block].send,
                self._algorithm.gpus[rank].blocks[block].channel,
            )
            source = held if step.kind == "s" else written
            mark = (step.stage, step.hop) if step.kind == "s" else (-1, -1)
            m = self._new(TransferDraft(rank, peer, source, source, step.count, COPY, channel, mark), (event.place, 1))
            self._read(m, rank, source, step.count)
            self._open[event.place] = m
            connections[rank, peer, channel].append(m)
            taken.append(m)
        for waited in waits:
            self._fence(waited, event.place)
        waits.clear()

    def _fence(self, earlier: Place, later: Place) -> None:
        """Note a dependency between two steps, unless their chunks ask for it anyway."""
        before, after = self._of_step[earlier], self._of_step[later]
        if not any(
            (a, b, n) in self.edges for a in before for b in after for n in (LATER, UNLESS_AROUND)
        ) and not self._add_same(before, after):
            self.fences.update((a, b) for a in before for b in after if a != b)

    def _add_same(self, before: list[int], after: list[int]) -> bool:
        """Whether both add to the same chunk: their order says nothing."""
        moves = [self.moves[n] for n in before], [self.moves[n] for n in after]
        return any(a.op == b.op == REDUCE and a.dst == b.dst and _overlap(a, b) for a in moves[0] for b in moves[1])

    def _local(
        self,
        rank: int,
        source: Where,
        target: Where,
        count: int,
        op: int,
        name: tuple[Place, int],
        mark: tuple[int, int] = (-1, -1),
    ) -> int:
        n = self._new(TransferDraft(rank, rank, source, target, count, op, 0, mark), name)
        self._read(n, rank, source, count)
        self._write(n, rank, target, count)
        return n

    def _new(self, move: TransferDraft, name: tuple[Place, int]) -> int:
        self.moves.append(move)
        self.names.append(name)
        return len(self.moves) - 1

    def _order(self, edges: Iterable[Edge]) -> None:
        self.edges.update(edges)
        if len(self.edges) > MAX_EDGES:
            raise InputError(f"{self._algorithm.name}: steps touch the same chunks more than {MAX_EDGES} times")

    def _read(self, n: int, rank: int, where: Where, count: int) -> None:
        for i in range(count):
            chunk = self._memory[rank, where[0], where[1] + i]
            self._order((w, n, LATER) for w in chunk.writers)
            chunk.readers.append(n)

    def _write(self, n: int, rank: int, where: Where, count: int) -> None:
        chunks = [self._memory[rank, where[0], where[1] + i] for i in range(count)]
        adds = self.moves[n].op == REDUCE
        first = not adds and where[0] != INPUT and all(c.fresh and not c.readers for c in chunks)
        for chunk in chunks:
            if adds and chunk.adds and not chunk.readers:
                for w in chunk.writers:
                    self.moves[w].op = REDUCE  # of a copy into memory that held nothing: the same, and may be at once
                chunk.writers.append(n)
            else:
                chunk.base = [(w, LATER) for w in chunk.writers]
                chunk.base += [(r, UNLESS_AROUND) for r in chunk.readers if r != n]
                chunk.writers, chunk.readers, chunk.adds = [n], [], adds or first
            chunk.fresh = False
            self._order((before, n, kind) for before, kind in chunk.base)


def _overlap(a: TransferDraft, b: TransferDraft) -> bool:
    return a.target[0] == b.target[0] and a.target[1] < b.target[1] + b.count and b.target[1] < a.target[1] + a.count
