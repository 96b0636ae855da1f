"""Networks as schedulers describe them: a tree of switches over nodes, or blocks of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from commsim.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch.

    Parameters
    ----------
    name : str
        Name of the switch.
    switches, nodes : tuple of str
        What hangs below it.
    speed : str
        What Slurm calls LinkSpeed: a word that it keeps and does not use.
    """

    name: str
    switches: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    speed: str = ""


@dataclass(frozen=True, slots=True)
class SwitchTree:
    """Switches over nodes; several trees if not all of them have a common top.

    Parameters
    ----------
    switches : tuple of Switch
        Switches in the order of the file.

    Raises
    ------
    InputError
        If a name is used twice, a switch is below two others, below itself or does not exist, or a node is a switch.

    Notes
    -----
    A node may be below two switches, of which Slurm warns only: it has a cable to each, and where one switch is meant,
    it is the first.
    """

    switches: tuple[Switch, ...]

    def __post_init__(self) -> None:
        if not self.switches:
            raise InputError("a tree needs at least one switch")
        require_unique([s.name for s in self.switches], "switch")
        if not any(s.nodes for s in self.switches):
            raise InputError("a tree needs at least one node below a switch")
        above = self.above
        names = {s.name for s in self.switches}
        for s in self.switches:
            for child in s.switches:
                if child not in names:
                    raise InputError(f"switch {s.name} has {child} below it, which is not described")
                if above[child] != s.name:
                    raise InputError(f"switch {child} is below {above[child]} and below {s.name}")
            for node in s.nodes:
                if node in names:
                    raise InputError(f"{node} is a node and a switch")
        if len(tuple(self.from_below())) < len(self.switches):
            raise InputError("a switch is below itself")

    @property
    def above(self) -> dict[str, str]:
        """Name of the switch above each node and each switch that has one."""
        parent: dict[str, str] = {}
        for s in self.switches:
            for child in (*s.switches, *s.nodes):
                parent.setdefault(child, s.name)
        return parent

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes, in the order of the file, each once."""
        return tuple(dict.fromkeys(node for s in self.switches for node in s.nodes))

    @property
    def shared(self) -> dict[str, tuple[str, ...]]:
        """Switches above each node that has several."""
        over: dict[str, list[str]] = {}
        for s in self.switches:
            for node in dict.fromkeys(s.nodes):
                over.setdefault(node, []).append(s.name)
        return {node: tuple(switches) for node, switches in over.items() if len(switches) > 1}

    def from_below(self) -> Iterable[Switch]:
        """Switches, each after those below it; those of a circle are left out."""
        by_name, above = {s.name: s for s in self.switches}, self.above
        missing = {s.name: len(s.switches) for s in self.switches}
        order = [s for s in self.switches if not s.switches]
        for switch in order:  # which grows on the way
            yield switch
            parent = above.get(switch.name)
            if parent is not None:
                missing[parent] -= 1
                if not missing[parent]:
                    order.append(by_name[parent])

    def layers(self) -> dict[str, tuple[str, ...]]:
        """By node, the switches above it, the closest first."""
        above = self.above
        over: dict[str, tuple[str, ...]] = {}
        for switch in reversed(tuple(self.from_below())):
            over[switch.name] = (switch.name, *(over[above[switch.name]] if switch.name in above else ()))
        return {node: over[above[node]] for node in self.nodes}

    def tiers(self) -> dict[str, int]:
        """Tier of each switch: one more than the highest below it, 1 for a switch over nodes only."""
        tier: dict[str, int] = {}
        for s in self.from_below():
            tier[s.name] = 1 + max((tier[child] for child in s.switches), default=0)
        return tier


def without_empty(switches: Sequence[Switch]) -> tuple[Switch, ...]:
    """Return switches without those that have nothing below them, or only such: nodes that register later go there."""
    names = {s.name for s in switches}
    filled = {s.name for s in switches if s.nodes}
    while more := {s.name for s in switches if s.name not in filled and filled.intersection(s.switches)}:
        filled |= more
    empty = names - filled
    return tuple(
        Switch(s.name, tuple(child for child in s.switches if child not in empty), s.nodes, s.speed)
        for s in switches if s.name in filled
    )  # fmt: skip


def without_unlabelled_top(tree: SwitchTree, labels: Sequence[str]) -> SwitchTree:
    """Return a tree without the one switch above all nodes if nodes have a label for each of the others only."""
    depths = {len(above) for above in tree.layers().values()}
    tops = {above[-1] for above in tree.layers().values()}
    if not labels or depths != {len(labels) + 1} or len(tops) > 1:
        return tree
    return SwitchTree(tuple(switch for switch in tree.switches if switch.name not in tops))


def tree_from(below: Mapping[str, tuple[Iterable[str], Iterable[str]]]) -> SwitchTree:
    """Make a tree of the switches and the nodes below each switch."""
    return SwitchTree(tuple(Switch(name, tuple(switches), tuple(nodes)) for name, (switches, nodes) in below.items()))


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of nodes, as Slurm's topology/block has them.

    Parameters
    ----------
    blocks : tuple of (str, tuple of str)
        Name and nodes of each.
    sizes : tuple of int
        Nodes that a job may be given in one piece, smallest first; each a power of two times the first.
    """

    blocks: tuple[tuple[str, tuple[str, ...]], ...]
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.blocks:
            raise InputError("a block topology needs at least one block")
        require_unique([name for name, _ in self.blocks], "block")
        require_unique([node for _, nodes in self.blocks for node in nodes], "node")
        base = self.sizes[0] if self.sizes else 0
        for size in self.sizes:
            times = size // base if base > 0 and size % base == 0 else 0
            if times < 1 or times & (times - 1):
                sizes = ", ".join(map(str, self.sizes))
                raise InputError(f"block sizes are powers of two times the first, which is at least 1, got {sizes}")
        if sorted(set(self.sizes)) != list(self.sizes):
            raise InputError(f"block sizes rise, got {', '.join(map(str, self.sizes))}")
        for name, nodes in self.blocks:
            if not nodes:
                raise InputError(f"block {name} has no nodes")

    def tree(self) -> SwitchTree:
        """Return a switch for every block, and one over all of them when there are several."""
        switches = [Switch(name, nodes=nodes) for name, nodes in self.blocks]
        if len(switches) > 1:
            switches.append(Switch(free_name("blocks", self), tuple(name for name, _ in self.blocks)))
        return SwitchTree(tuple(switches))


def blocks_of(tree: SwitchTree, sizes: tuple[int, ...] = ()) -> Blocks:
    """Return the blocks of nodes below each switch that has nodes, and the sizes that they allow.

    Parameters
    ----------
    tree : SwitchTree
        Switches over nodes.
    sizes : tuple of int
        Sizes that were given. Default: the smallest block D gives D, 2D, ... up to D times the number of blocks.
    """
    blocks = tuple((s.name, s.nodes) for s in tree.switches if s.nodes)
    smallest = min(len(nodes) for _, nodes in blocks)
    return Blocks(blocks, sizes or tuple(smallest << k for k in range(len(blocks).bit_length())))


def free_name(wanted: str, taken: Blocks | SwitchTree | Iterable[str]) -> str:
    """Return `wanted`, with a number if it is taken."""
    if isinstance(taken, Blocks):
        names = {name for name, _ in taken.blocks} | {node for _, nodes in taken.blocks for node in nodes}
    else:
        names = {s.name for s in taken.switches} | set(taken.nodes) if isinstance(taken, SwitchTree) else set(taken)
    n = 0
    while (name := f"{wanted}{n or ''}") in names:
        n += 1
    return name


def require_unique(names: list[str], what: str) -> None:
    """Raise if a name appears twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{what} {name} appears twice")
        seen.add(name)
