"""Links between the GPUs of a topology file: NVLink and xGMI, to switches, to each other, and to their sockets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from commsim.core.machines.parts import Parts
from commsim.formats.markup import Element

from .gpu_models import GpuGeneration

_SOCKET_BRIDGE = "0x068001"


@dataclass(slots=True)
class Device:
    """A PCI device: a bridge with devices below it, a GPU, or a NIC (one of its ports, if it has several)."""

    element: Element
    kind: int
    rate: float
    below: list[Device] = field(default_factory=list)


@dataclass(slots=True)
class Island:
    """GPUs that NVLinks or xGMI join.

    Parameters
    ----------
    gpus : list of Device
        Its GPUs.
    to_switch : dict of int to int
        Links of a GPU, by the identity of its device, to NVSwitch chips.
    pairs : dict of (int, int) to int
        Links between two GPUs, by their identities.
    """

    gpus: list[Device]
    to_switch: dict[int, int] = field(default_factory=dict)
    pairs: dict[tuple[int, int], int] = field(default_factory=dict)


def _targets(leaf: Device) -> list[tuple[Element, str]]:
    """Return links of a GPU to GPUs and switches, each with where it leads."""
    links = [link for gpu in leaf.element.all("gpu") for link in gpu.all("nvlink", "xgmi")]
    return [
        (k, k.text("target").strip().lower())
        for k in links
        if not k.text("tclass", "").lower().startswith(_SOCKET_BRIDGE)
    ]


def switches_of(leaf: Device) -> set[str]:
    """Return the NVSwitch chips that a GPU is on."""
    return {
        to for link, to in _targets(leaf) if link.tag == "nvlink" and not link.text("tclass", "").startswith("0x03")
    }


def nvlinks_of(leaf: Device) -> int:
    """Return how many NVLinks a GPU has to switches and to other GPUs."""
    return sum(link.whole("count", minimum=1) for link, _ in _targets(leaf) if link.tag == "nvlink")


def islands_of(leaves: list[Device]) -> list[Island]:
    """Split GPUs by their links: those that share an NVSwitch chip, or that a chain of direct links joins."""
    by_bus: dict[str, Device] = {}
    for leaf in leaves:
        if by_bus.setdefault(_bus(leaf.element), leaf) is not leaf:
            leaf.element.fail(f"has the busid of another GPU, {leaf.element.text('busid')}")
    group = {id(leaf): Island([leaf]) for leaf in leaves}
    chips: dict[str, Device] = {}
    for leaf in leaves:
        for link, target in _targets(leaf):
            count, own = link.whole("count", minimum=1), group[id(leaf)]
            if (other := by_bus.get(target)) is leaf:
                continue  # as virtual machines have it, which do not see where their links lead; NCCL reads it
            if other is not None:
                pair = min(id(leaf), id(other)), max(id(leaf), id(other))
                own.pairs[pair] = max(own.pairs.get(pair, 0), count)
            elif link.tag == "xgmi" or link.text("tclass", "").lower().startswith("0x03"):
                link.fail(f"leads to {target}, which is no GPU of this file")
            else:
                own.to_switch[id(leaf)] = own.to_switch.get(id(leaf), 0) + count
                other = chips.setdefault(target, leaf)
            _merge(group, own, group[id(other)] if other is not None else own)
    return list({id(island): island for island in group.values()}.values())


def _merge(group: dict[int, Island], island: Island, other: Island) -> None:
    if island is other:
        return
    island.to_switch |= other.to_switch
    for pair, count in other.pairs.items():
        island.pairs[pair] = max(island.pairs.get(pair, 0), count)
    island.gpus += other.gpus
    group |= dict.fromkeys(map(id, other.gpus), island)


def add_islands(
    parts: Parts,
    islands: list[Island],
    models: Mapping[int, GpuGeneration],
    number_of: Mapping[int, int],
    *,
    aggregates: bool,
) -> None:
    """Join the GPUs of each island: by one switch for all NVSwitch chips, directly, or both.

    Where some GPUs are joined directly and others not, as in a cube mesh, GPUs forward for each other.
    """
    switches = itertools.count()
    for island in islands:
        if island.to_switch:
            rates = {
                number_of[leaf]: n * models[leaf].link
                for leaf, n in sorted(island.to_switch.items(), key=lambda x: number_of[x[0]])
            }
            parts.join_gpus(f"nvswitch{next(switches)}", rates, aggregates=aggregates)
        direct: dict[tuple[int, int], float] = {}
        for (a, b), n in island.pairs.items():
            low, high = sorted((number_of[a], number_of[b]))
            direct[low, high] = n * min(models[a].link, models[b].link)
        gpus = [] if island.to_switch else sorted(number_of[id(leaf)] for leaf in island.gpus)
        parts.mesh(dict(sorted(direct.items())), gpus)


def add_c2c(parts: Parts, leaf: Device, number: int, socket: int, link_rate: float) -> None:
    """Add a GPU's chip-to-chip link to its socket, or NVLinks of its own to it."""
    gpus = leaf.element.all("gpu")
    rate = sum(c.whole("bw", minimum=1) * c.whole("count", minimum=1) * 1e6 for gpu in gpus for c in gpu.all("c2c"))
    bridges = (
        link for gpu in gpus for link in gpu.all("nvlink") if link.text("tclass", "").lower().startswith(_SOCKET_BRIDGE)
    )
    rate += sum(link.whole("count", minimum=1) * link_rate for link in bridges)
    if rate:
        parts.cable(number, socket, rate)


def _bus(element: Element) -> str:
    return element.text("busid").strip().lower()
