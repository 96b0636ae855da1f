"""What NCCL launches for one call: the schedule of its channels, by algorithm, and its time on a star."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from collectives.dense.multi_ring import leaving, ring_order
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.schedule import Schedule

from .call import BY_RANK, MAX_HEADS, NEWEST, NcclCall, release_of
from .mesh_rings import mesh_order
from .nvls import head_places, write_nvls
from .pat import write_pat
from .pieces import pieces_of
from .rings import ring_all_reduce, ring_half
from .rules import ChannelPart, cut_call, first_loops
from .sharp_trees import OUTSIDE, SharpTrees, below_switches, from_member, read_sharp_trees
from .trees import ChannelTree, chain, node_trees, over_machines, write_trees

Algorithm = Literal["auto", "ring", "tree", "nvls", "nvls_tree", "pat", "collnet", "collnet_direct", "collnet_chain"]
Choice = Literal["auto", "ll", "ll128", "simple"]
Rings = Literal["mesh", "rails", "pairs"]
Machines = tuple[tuple[int, ...], ...]

# Channels unless the network says how many: a communicator has at least two.
CHANNELS = 2
# Bytes of the array that is cut unless said.
SIZE = 4 * 2**20
VERSION = f"{NEWEST[0]}.{NEWEST[1]}"


@dataclass(frozen=True, slots=True)
class NcclParameters:
    """Parameters of a collective of NCCL.

    Parameters
    ----------
    name, operation : str
        Name and operation of the collective.
    n_ranks : int
        Ranks.
    algorithm, protocol, channels, version, n_bytes, machines, rings, cycles, sharp
        Parameters of the collectives themselves; rings of NCCL go by rails, or through a machine by `cycles`.
    loops : int
        Loops of each channel that are built, all full; 0 for those of the call.
    slow : bool
        Whether rings carry so little together that NCCL gives them fewer threads.
    heads : int
        GPUs of a machine that head a part with CollNet direct; 0 for all. NVLink SHARP has no more than 32.
    rails : int
        NICs of a machine, by whose GPUs rings and trees leave it in turn; 0 for as many as GPUs.
    buffer : int, bytes
        Buffer of a connection with Simple; 0 for NCCL's own.
    nvls_chunk : int, bytes
        Largest chunk of NVLink SHARP; 0 for NCCL's own.
    """

    name: str
    operation: str
    n_ranks: int
    algorithm: str = "auto"
    protocol: str = "auto"
    channels: int | None = None
    version: str = VERSION
    n_bytes: int = SIZE
    machines: Machines | None = None
    rings: Rings = "rails"
    cycles: Machines | None = None
    sharp: SharpTrees | None = None
    loops: int = 0
    slow: bool = False
    heads: int = 0
    rails: int = 0
    buffer: int = 0
    nvls_chunk: int = 0

    @property
    def in_cycles(self) -> bool:
        """Whether rings go through machines in several orders, not by rails alone."""
        return self.rings == "mesh" or self.cycles is not None

    @property
    def units(self) -> Machines:
        """Ranks of each machine; by default all in one."""
        return (tuple(range(self.n_ranks)),) if self.machines is None else self.machines

    def parts(self, call: NcclCall) -> tuple[ChannelPart, ...]:
        """Return what each channel does, in the loops that are built."""
        parts = cut_call(call)
        return tuple(first_loops(part, self.loops) for part in parts) if self.loops else parts

    def call(self) -> NcclCall:
        """Return the call, with a ring and Simple where NCCL's choice is not known.

        Raises
        ------
        InputError
            If machines are no partition of the ranks, or the call is none that NCCL has.
        """
        units = self.units
        if sorted(rank for unit in units for rank in unit) != list(range(self.n_ranks)) or not all(units):
            raise InputError(f"{self.name}: machines must hold each rank 0..{self.n_ranks - 1} exactly once")
        algorithm = _one_of(self.algorithm, self.operation)
        if not 0 <= self.heads <= len(units[0]):
            raise InputError(f"{self.name}: heads must be 0 to the {len(units[0])} GPUs of a machine, got {self.heads}")
        try:
            return NcclCall(
                self.operation,
                self.n_bytes,
                self.n_ranks,
                len(units),
                algorithm,
                "simple" if self.protocol == "auto" else self.protocol,
                CHANNELS if self.channels is None else self.channels,
                release_of(self.version),
                slow=self.slow,
                heads=_heads(algorithm, self.operation, len(units[0]), self.heads),
                buffer=self.buffer,
                nvls_chunk=self.nvls_chunk,
                rccl=self.name.startswith("rccl"),
            )
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None


def _heads(algorithm: str, operation: str, per_node: int, n: int) -> int:
    if algorithm.startswith("nvls"):
        return min(MAX_HEADS, n or per_node)
    return n or per_node if algorithm == "collnet_direct" and operation not in BY_RANK else per_node


def _one_of(algorithm: str, operation: str) -> str:
    if algorithm == "auto":
        return "ring"
    if algorithm == "collnet":
        return "collnet_direct" if operation in BY_RANK else "collnet_chain"
    return algorithm


def launch(parameters: NcclParameters, root: int = 0) -> Schedule:
    """Build what NCCL launches.

    Parameters
    ----------
    parameters : NcclParameters
        The call.
    root : int
        Root of a broadcast or a reduce.

    Raises
    ------
    InputError
        If NCCL has no such call, or its algorithm cannot run on these machines.
    """
    call, units, n = parameters.call(), parameters.units, parameters.n_ranks
    if n == 1:
        return Program(1, 1).build()
    if parameters.rings == "pairs":
        return _pairs(parameters)
    if call.algorithm == "ring":
        sizes = {len(unit) for unit in units}
        if parameters.cycles and any(
            sizes != {len(ring)} or {*ring} != {*range(len(ring))} for ring in parameters.cycles
        ):
            raise InputError(
                f"{parameters.name}: each of cycles must hold each place of a machine, from 0 on, exactly once"
            )
        rails = functools.partial(ring_order, n_rails=parameters.rails)
        order = functools.partial(mesh_order, cycles=parameters.cycles) if parameters.in_cycles else rails
        return _rings(call, parameters.parts(call), units, root, order)
    in_network = call.algorithm == "collnet_direct" or (call.algorithm == "nvls" and len(units) > 1)
    if call.operation in BY_RANK and in_network:
        return _halves_in_network(parameters, call, parameters.parts(call))
    if call.algorithm in ("nvls", "nvls_tree"):
        return _nvls(parameters, call, parameters.parts(call))
    if call.algorithm == "pat":
        if len(units) not in (1, n):
            raise InputError(
                f"{parameters.name}: algorithm=pat has one rank in each machine, got {len(units)} machines"
            )
        pieces = pieces_of(parameters.parts(call), n)
        p = Program(n, n * pieces.width)
        write_pat(p, pieces, reduces=call.operation == "reduce_scatter")
        return p.build()
    return _trees(parameters, call, parameters.parts(call))


def _pairs(parameters: NcclParameters) -> Schedule:
    """Each rank adds up its part, which all others send to it, and sends the sum to all."""
    n = parameters.n_ranks
    if (
        parameters.operation != "all_reduce"
        or parameters.algorithm not in ("auto", "ring")
        or len(parameters.units) > 1
    ):
        raise InputError(f"{parameters.name}: rings=pairs is for an all-reduce in one machine; take mesh or rails")
    src, dst = np.nonzero(~np.eye(n, dtype=np.bool_))
    p = Program(n, n)
    p.reduce(dst, src=src, dst=dst)
    p.fence()
    p.copy(src, src=src, dst=dst)
    return p.build()


def _rings(
    call: NcclCall, parts: tuple[ChannelPart, ...], units: Machines, root: int,
    order_of: Callable[[Machines, int], NDArray[np.int64]],
) -> Schedule:  # fmt: skip
    orders = [order_of(units, channel) for channel in range(len(parts))]
    n, is_chain = call.n_ranks, call.operation in ("broadcast", "reduce")
    pieces = pieces_of(parts, 1 if is_chain else n)
    if is_chain:
        p = Program(n, pieces.width)
        # To the root the ring is gone through backwards, so that the last chain link is its predecessor's.
        trees = [
            ChannelTree(chain(order if call.operation == "broadcast" else order[::-1], root), channel)
            for channel, order in enumerate(orders)
        ]
        write_trees(p, trees, pieces, up=call.operation == "reduce", down=call.operation == "broadcast")
        return p.build()
    p = Program(n, n * pieces.width)
    if call.operation == "all_reduce":
        ring_all_reduce(p, orders, pieces)
    else:
        ring_half(p, orders, pieces, reduces=call.operation == "reduce_scatter")
    return p.build()


def _trees(parameters: NcclParameters, call: NcclCall, parts: tuple[ChannelPart, ...]) -> Schedule:
    """Trees and chains, above which CollNet's network adds: helpers, its switches."""
    n, units = call.n_ranks, parameters.units
    direct = call.algorithm == "collnet_direct"
    heads = call.n_heads if direct else 1
    if direct and len({len(unit) for unit in units}) > 1:
        raise InputError("algorithm=collnet_direct needs as many ranks in every machine")
    pieces, trees = pieces_of(parts, 1, heads), list[ChannelTree]()
    if call.algorithm != "tree":
        network = read_sharp_trees(parameters.name, parameters.sharp, len(units))
        p = Program(n, pieces.width, n_helpers=network.shape[1] - len(units))
        # Heads lie evenly among the GPUs, as NICs do.
        rails = head_places(len(units[0]), heads) if direct else range(len(parts))
        above = [_below_network(units, network, rail, direct=direct) for rail in rails]
        if direct:
            trees = [
                ChannelTree(above[place], channel, place) for channel in range(len(parts)) for place in range(heads)
            ]
        else:
            trees = [ChannelTree(parent, channel) for channel, parent in enumerate(above)]
    else:
        p = Program(n, pieces.width)
        # The first half of a communicator's channels takes the one tree, the second half the other.
        both = node_trees(len(units))
        for channel in range(len(parts)):
            nodes = both[int(channel >= (call.n_channels + 1) // 2)]
            if parameters.in_cycles:  # the chain through a machine is that of the channel's ring
                chains = [mesh_order((unit,), channel, parameters.cycles).tolist() for unit in units]
                trees.append(ChannelTree(over_machines(chains, nodes, 0, n), channel))
                continue
            place = leaving(len(units[0]), channel, parameters.rails)
            trees.append(ChannelTree(over_machines(units, nodes, place, n), channel))
    # A head returns sums by the connections on which it gives to other heads: NCCL has other warps for it.
    in_turn = call.rccl and call.protocol == "simple"
    write_trees(p, trees, pieces, up=True, down=True, apart=call.n_channels if direct else 0, in_turn=in_turn)
    return p.build()


def _below_network(units: Machines, network: NDArray[np.int64], rail: int, *, direct: bool) -> NDArray[np.int64]:
    """Hang a member of each machine below the switches of its rail, and below it a chain or all others at once."""
    members, n = [unit[rail % len(unit)] for unit in units], sum(map(len, units))
    parent = below_switches(network[rail % len(network)], members, n, n + network.shape[1] - len(units))
    alone = over_machines(units, np.full(len(units), -1), rail, n)
    for unit, member in zip(units, members, strict=True):
        below = [rank for rank in unit if rank != member]
        parent[below] = member if direct else alone[below]
    return parent


def _halves_in_network(parameters: NcclParameters, call: NcclCall, parts: tuple[ChannelPart, ...]) -> Schedule:
    """All-gather and reduce-scatter: the part of a rank crosses the switches of its rail, and members of the rail.

    An all-gather copies along the tree whose root is the rank, a reduce-scatter adds along it. Within a machine the
    member gives to each other GPU, with NVLink SHARP once to the switch.
    """
    n, units = call.n_ranks, parameters.units
    if len({len(unit) for unit in units}) > 1:
        raise InputError(f"{parameters.name}: algorithm={call.algorithm} needs as many ranks in every machine")
    network = read_sharp_trees(parameters.name, parameters.sharp, len(units))
    first = n + (len(units) if call.algorithm == "nvls" else 0)  # before them the switches of the machines
    last = first + network.shape[1] - len(units)
    pieces = pieces_of(parts, n)
    p, trees = Program(n, n * pieces.width, n_helpers=last - n), []
    for place, members in enumerate(zip(*units, strict=True)):
        above = below_switches(network[place % len(network)], members, first, last)
        if len(units) == 1:
            above[:] = OUTSIDE
        for machine, (unit, member) in enumerate(zip(units, members, strict=True)):
            if call.algorithm == "nvls":
                above[n + machine] = member
            above[[rank for rank in unit if rank != member]] = n + machine if call.algorithm == "nvls" else member
        turned = [(rank, from_member(above, rank)) for rank in members]
        trees += [ChannelTree(parent, channel, rank=rank) for rank, parent in turned for channel in range(len(parts))]
    is_gather = call.operation == "all_gather"
    write_trees(p, trees, pieces, up=not is_gather, down=is_gather)
    return p.build()


def _nvls(parameters: NcclParameters, call: NcclCall, parts: tuple[ChannelPart, ...]) -> Schedule:
    name, units = parameters.name, parameters.units
    if len({len(unit) for unit in units}) > 1:
        raise InputError(f"{name}: algorithm={call.algorithm} needs as many ranks in every machine")
    in_network = call.algorithm == "nvls" and len(units) > 1
    if call.algorithm == "nvls_tree" and len(units) == 1:
        raise InputError(f"{name}: algorithm=nvls_tree needs several machines; take nvls on one")
    by_rank = call.operation in BY_RANK
    pieces = pieces_of(parts, call.n_ranks if by_rank else 1, 1 if by_rank else call.n_heads)
    trees = read_sharp_trees(name, parameters.sharp, len(units))
    first = call.n_ranks + len(units)
    n_helpers = len(units) + (trees.shape[1] - len(units) if in_network else 0)
    p = Program(call.n_ranks, pieces.width * (call.n_ranks if by_rank else 1), n_helpers=n_helpers)
    network = [
        below_switches(trees[place % len(trees)], [unit[place] for unit in units], first, call.n_ranks + n_helpers)
        for place in head_places(len(units[0]), call.n_heads)
        if in_network
    ]
    up, down = call.operation != "all_gather", call.operation != "reduce_scatter"
    write_nvls(p, units, pieces, call.n_channels, up=up, down=down, network=network, n_heads=call.n_heads)
    return p.build()
