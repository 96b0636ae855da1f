"""One machine from the text that ``nvidia-smi topo -m`` prints: how each pair of GPUs and NICs is connected.

The matrix says how devices are connected, not how fast. Rates are by default those of the generation of GPU that the
number of NVLinks points to.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.machines.hardware import generation_of, write_hardware
from commsim.core.machines.parts import Parts
from commsim.core.network import CPU, GPU, NIC, Network
from commsim.core.units import Bandwidth
from commsim.files.whole_files import read_text

from .nccl_topology import nvlink_rate

_DEVICE = re.compile(r"(GPU|NIC)(\d+)|((?:mlx|hfi|bnxt|efa|irdma)\w*)", re.ASCII)
_RELATION = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|NV(\d{1,3})", re.ASCII)
_SAME_SWITCH, _SAME_SOCKET = {"PIX", "PXB"}, {"PIX", "PXB", "PHB", "NODE"}
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_MAX_LINKS = 18
# By compute capability: most NVLinks of a GPU; its PCIe link (generation 3, 4, 5; x16) and the link between sockets
# that such GPUs usually come with (Skylake, Rome, Sapphire Rapids), both as NCCL counts them.
_GENERATIONS = {70: (6, 12e9, 10e9), 80: (12, 24e9, 16e9), 90: (18, 48e9, 22e9)}


@dataclass(frozen=True, slots=True)
class _Matrix:
    names: list[str]
    kinds: list[int]
    relation: list[list[str]]
    affinity: list[list[str]]

    def pairs(self) -> Iterable[tuple[int, int, str]]:
        return ((a, b, self.relation[a][b]) for a, b in itertools.combinations(range(len(self.names)), 2))

    def components(self, relations: set[str], *, by_affinity: bool = False) -> list[list[int]]:
        """Devices that some chain of `relations` joins, each set in order, sets in the order of their first member.

        NVLink hides how two GPUs are connected otherwise; with `by_affinity` those of equal CPU and NUMA affinity, as
        far as the matrix has these columns, belong together too.
        """
        group = list(range(len(self.names)))
        for a, b, relation in self.pairs():
            near = by_affinity and self.affinity[a] == self.affinity[b] != []
            if (near or relation in relations) and group[a] != group[b]:
                old = group[b]
                group = [group[a] if g == old else g for g in group]
        return [[i for i, g in enumerate(group) if g == key] for key in dict.fromkeys(group)]


def read_nvidia_smi(
    path: str | Path, sm: int | None = None, pcie: Bandwidth | None = None, nic: Bandwidth | None = None
) -> Network:
    """Read a machine from the output of ``nvidia-smi topo -m``.

    Parameters
    ----------
    path : path
        The text, as it was printed.
    sm : int, optional
        Compute capability of the GPUs, 90 for 9.0, which decides the rate of an NVLink; by default the oldest
        generation that has as many NVLinks.
    pcie : float, bytes/s, optional
        Bandwidth of the PCIe link of a GPU and of the uplink of a PCIe switch; by default that of the same generation.
    nic : float, bytes/s, optional
        Bandwidth of a NIC; by default that of its PCIe link, since the matrix does not have it.

    Returns
    -------
    Network
        ``gpu0 …`` and ``nic0 …`` in the order of the matrix; ``cpu0 …`` for what SYS separates; ``pcie0 …`` for what
        PIX and PXB join; ``nvswitch0`` where no GPU has enough NVLinks to reach the others directly.

    Raises
    ------
    InputError
        Without a matrix, or if a cell is not known, or two cells contradict each other; names the line.
    """
    matrix = _read_matrix(path)
    links = {(a, b): int(r[2:]) for a, b, r in matrix.pairs() if r.startswith("NV")}
    n_links, is_switched = _links_of_a_gpu(matrix, links)
    generation = next((g for g, (n, *_) in _GENERATIONS.items() if n_links <= n), 90) if n_links else 80
    pcie = pcie if pcie is not None else _GENERATIONS[generation][1]
    parts = Parts()
    numbers = itertools.count(), itertools.count()
    for kind in matrix.kinds:
        parts.add(f"gpu{next(numbers[0])}" if kind == GPU else f"nic{next(numbers[1])}", kind)
    port = [pcie if kind == GPU or nic is None else nic for kind in matrix.kinds]
    switches, hubs = matrix.components(_SAME_SWITCH), itertools.count()
    for s, socket in enumerate(matrix.components(_SAME_SOCKET, by_affinity=True)):
        cpu = parts.add(f"cpu{s}", CPU)
        for members in (m for m in switches if m[0] in socket):
            devices = [(i, port[i]) for i in members]
            if len(devices) == 1:
                parts.leaf(cpu, devices[0])
            else:
                parts.crossing(cpu, parts.pcie_switch(f"pcie{next(hubs)}", devices), pcie)
    parts.join_cpus(_GENERATIONS[generation][2])
    rate_of_one = nvlink_rate(sm if sm is not None else generation)
    if is_switched:
        parts.join_gpus(n_links * rate_of_one)
    else:
        gpus = [i for i, kind in enumerate(matrix.kinds) if kind == GPU]
        parts.mesh({pair: n * rate_of_one for pair, n in links.items()}, gpus)
    # Without NVLinks the matrix says nothing of the generation, and the usual one is not written down as known.
    made = generation_of(sm if sm is not None else generation if n_links else 0)
    return dataclasses.replace(parts.build(str(path)), hardware=write_hardware({"gpu": made} if made else {}))


def _links_of_a_gpu(matrix: _Matrix, links: dict[tuple[int, int], int]) -> tuple[int, bool]:
    """Count the NVLinks of the GPU that has most, and say whether they lead to a switch.

    With a switch every pair is said to have all links of a GPU, so that a GPU seems to have more than there are.
    """
    used = [sum(n for pair, n in links.items() if i in pair) for i in range(len(matrix.names))]
    is_switched = max(used) > _MAX_LINKS
    return (max(links.values()) if is_switched else max(used)), is_switched


def _read_matrix(path: str | Path) -> _Matrix:
    lines = _ESCAPES.sub("", read_text(path)).splitlines()
    header = next((n for n, line in enumerate(lines) if _is_header(line.split())), None)
    if header is None:
        raise InputError(f"{path}: no matrix of nvidia-smi topo -m: no line names its columns, beginning with GPU0")
    names = list(itertools.takewhile(_DEVICE.fullmatch, lines[header].split()))
    rows: dict[str, tuple[int, list[str]]] = {}
    for n, line in enumerate(lines[header + 1 :], header + 2):
        cells = line.split()
        if not cells or cells[0] not in names:
            break
        if cells[0] in rows:
            raise InputError(f"{path}, line {n}: a second row {cells[0]}")
        rows[cells[0]] = n, cells[1:]
    for name in names:
        if name not in rows:
            raise InputError(f"{path}, line {header + 1}: there is a column {name}, but no row")
    for n, cells in rows.values():
        if len(cells) < len(names):
            raise InputError(f"{path}, line {n}: {len(cells)} cells, but there are {len(names)} columns of devices")
        for cell in cells[: len(names)]:
            if not _RELATION.fullmatch(cell):
                raise InputError(f"{path}, line {n}: {cell!r} is not one of X, NV#, PIX, PXB, PHB, NODE, SYS")
    matrix = [rows[name][1] for name in names]
    for a, b in itertools.product(range(len(names)), repeat=2):
        if matrix[a][b] != matrix[b][a] or (matrix[a][b] == "X") != (a == b):
            raise InputError(f"{path}, line {rows[names[a]][0]}: {names[a]} is {matrix[a][b]} to {names[b]}, "
                             f"but {names[b]} is {matrix[b][a]} to {names[a]}")  # fmt: skip
    affinity = [rows[name][1][len(names) : len(names) + 2] for name in names]
    return _Matrix(names, [GPU if name.startswith("GPU") else NIC for name in names], matrix, affinity)


def _is_header(words: list[str]) -> bool:
    return words[:1] == ["GPU0"] and not (len(words) > 1 and _RELATION.fullmatch(words[1]))
