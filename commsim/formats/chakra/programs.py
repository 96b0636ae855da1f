"""Programs of sends, receives and computations as Chakra traces, which ASTRA-sim simulates message by message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.formats.programs import operations as ops
from commsim.formats.programs.operations import Programs, RankOperation, deadlock, sorted_after
from commsim.formats.programs.stages import MAX_STAGE, fenced, stages_of

from .codec import COLLECTIVE, COMP, MEM_LOAD, MEM_STORE, METADATA, RECV, SEND, Node, TraceMetadata
from .trace_file import VERSION, ChakraTrace
from .traces import prefix_of, read_traces, write_traces

# Our own attribute: times in the format are whole microseconds.
DURATION = "duration_ns"
# Our own attribute: how many fences the node comes after; a node for the fence itself would take a nanosecond.
STAGE = "commsim_stage"
_INT32, _INT64 = (range(-(2 ** (bits - 1)), 2 ** (bits - 1)) for bits in (32, 64))
MAX_WAITS = 2**22


def traces_of(programs: Programs, name: str = "") -> list[ChakraTrace]:
    """Write programs as traces.

    Computations that take no time are left out, since ASTRA-sim would give them a nanosecond; what waits for them waits
    for what they wait for.

    Raises
    ------
    InputError
        If a number does not fit the format, or operations wait for each other.
    """
    about = TraceMetadata(VERSION, {"collective": ("string_val", name)} if name else {})
    return [ChakraTrace(about, tuple(_nodes(rank, program))) for rank, program in enumerate(programs.ranks)]


def _nodes(rank: int, program: tuple[RankOperation, ...]) -> list[Node]:
    waits = _waits(rank, program)
    stage = stages_of(rank, program)
    nodes = []
    for i, op in enumerate(program):
        if op.kind == ops.CALC and not op.size:
            continue
        attributes: dict[str, tuple[str, Any]] = {"is_cpu_op": ("bool_val", False)}
        if stage[i]:
            attributes[STAGE] = "int64_val", stage[i]
        if op.size not in _INT64:
            raise InputError(f"rank {rank}: {op.size} does not fit 64 bits")
        if op.kind == ops.CALC:
            attributes[DURATION] = "int64_val", op.size
            nodes.append(Node(i, f"comp{i}", COMP, data=waits[i], duration=-(-op.size // 1000), attributes=attributes))
            continue
        sends = op.kind == ops.SEND
        ends = (rank, op.peer) if sends else (op.peer, rank)
        if op.peer not in _INT32 or op.tag not in _INT32:
            raise InputError(f"rank {rank}: peer {op.peer} and tag {op.tag} must be known, and fit 32 bits")
        attributes |= {"comm_size": ("int64_val", op.size), "comm_src": ("int32_val", ends[0]),
                       "comm_dst": ("int32_val", ends[1]), "comm_tag": ("int32_val", op.tag)}  # fmt: skip
        label = f"send{i}_to_{op.peer}" if sends else f"recv{i}_from_{op.peer}"
        nodes.append(Node(i, label, SEND if sends else RECV, data=waits[i], attributes=attributes))
    return nodes


def _waits(rank: int, program: tuple[RankOperation, ...]) -> list[tuple[int, ...]]:
    """Operations that each one waits for, looking through those that take no time and are not written.

    What is found so and was waited for by another that is waited for anyway is left out.
    """
    waits = [{*op.after, *op.after_start} for op in program]
    order = sorted_after(waits)
    if order is None:
        raise deadlock(waits, lambda i: f"rank {rank}'s operation {i}")
    waited_of: list[tuple[int, ...]] = [()] * len(program)
    shown = list(waited_of)
    total = 0
    for i in order:
        waited: dict[int, None] = {}
        implied: set[int] = set()
        for j in program[i].after:
            unseen = program[j].kind == ops.CALC and not program[j].size
            waited |= dict.fromkeys(waited_of[j] if unseen else (j,))
            implied |= set() if unseen else set(waited_of[j])
        for j in program[i].after_start:
            waited |= dict.fromkeys(waited_of[j])
        waited_of[i] = tuple(waited)
        shown[i] = tuple(j for j in waited if j not in implied or j in program[i].after)
        total += len(waited)
        if total > MAX_WAITS:
            raise InputError(f"rank {rank}: more than {MAX_WAITS} operations wait for each other")
    return shown


def programs_of_traces(traces: list[ChakraTrace]) -> Programs:
    """Read traces as programs.

    Raises
    ------
    InputError
        If there is a collective, or a message says too little.
    """
    return Programs(tuple(_ops(rank, trace) for rank, trace in enumerate(traces)))


def read_programs(path: str | Path) -> Programs:
    """Read the traces of all ranks as programs."""
    return programs_of_traces(read_traces(path))


def write_programs(programs: Programs, path: str | Path, name: str = "") -> None:
    """Write programs as the traces of all ranks; `name` is that of the collective.

    Parameters
    ----------
    programs : Programs
        Programs of all ranks.
    path : path
        The prefix, or one of the files.
    name : str
        Name of the collective.
    """
    write_traces(traces_of(programs, name), prefix_of(path))


def _ops(rank: int, trace: ChakraTrace) -> tuple[RankOperation, ...]:
    place = {node.number: i for i, node in enumerate(trace.nodes)}
    operations: list[RankOperation] = []
    stage = [whole_attribute(rank, node, STAGE, 0) for node in trace.nodes]
    if max(stage, default=0) >= MAX_STAGE:
        raise InputError(f"rank {rank}: {STAGE} must be below {MAX_STAGE}, got {max(stage)}")
    for node in trace.nodes:
        after = tuple(sorted({place[number] for number in (*node.control, *node.data)}))
        if node.kind in (SEND, RECV):
            own, other = ("comm_src", "comm_dst") if node.kind == SEND else ("comm_dst", "comm_src")
            if whole_attribute(rank, node, own, rank) != rank:
                raise InputError(f"rank {rank}: node {node.number} names rank {whole_attribute(rank, node, own)}")
            kind = ops.SEND if node.kind == SEND else ops.RECV
            size, peer, tag = (whole_attribute(rank, node, name) for name in ("comm_size", other, "comm_tag"))
            operations.append(RankOperation(kind, size, peer, tag, after=after))
        elif node.kind in (COMP, MEM_LOAD, MEM_STORE, METADATA):
            operations.append(
                RankOperation(ops.CALC, 0 if node.kind == METADATA else nanoseconds(rank, node), after=after)
            )
        elif node.kind == COLLECTIVE:
            raise InputError(f"rank {rank}: node {node.number} is a collective; read the traces as a workload")
        else:
            raise InputError(f"rank {rank}: node {node.number} has the unknown type {node.kind}")
    return fenced(operations, stage)


def nanoseconds(rank: int, node: Node) -> int:
    """Return a node's duration, in ns if it has one in ns."""
    value = whole_attribute(rank, node, DURATION, 1000 * node.duration)
    if value >= 2**63:
        raise InputError(f"rank {rank}: node {node.number} takes {value} ns, more than fit 64 bits")
    return value


def whole_attribute(rank: int, node: Node, name: str, default: int | None = None) -> int:
    """Return an attribute that is a whole number of 0 or more.

    Parameters
    ----------
    rank : int
        Rank of the trace, named in messages.
    node : Node
        Node with the attribute.
    name : str
        Name of the attribute.
    default : int, optional
        Default of a missing field or attribute; required without.

    Raises
    ------
    InputError
        If it is missing without a default, or is something else.
    """
    _, value = node.attributes.get(name, ("", default))
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(
            f"rank {rank}: node {node.number} needs {name}, a whole number of 0 or more, got {value!r:.60}"
        )
    return value
