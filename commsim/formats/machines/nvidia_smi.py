"""One machine from the text that ``nvidia-smi topo -m`` prints: how each pair of GPUs and NICs is connected.

The matrix says how devices are connected, not how fast: rates are those of the GPU. Which one that is follows from a
name in the text, from GPUs that are NUMA nodes of their own, or from the number of NVLinks; else it is a guess.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text
from commsim.core.machines.parts import Parts
from commsim.core.network import CPU, GPU, NIC, Network
from commsim.core.spec import is_whole
from commsim.core.units import Bandwidth
from commsim.formats.logs.log_lines import lines_of_log

from .gpu_models import GpuGeneration, of_links, of_names, of_user
from .rates import transport_of_nics
from .rocm_smi import SIGN, read_rocm_smi

_DEVICE = re.compile(r"(GPU|NIC)(\d+)|((?:mlx|hfi|bnxt|efa|rdma|irdma|roce|ibp|ionic|cxi)\w*)", re.ASCII)
# Tables that begin alike.
_OTHER_TABLES = {
    r"^[ \t]*OK[ \t]+= Status Ok": "nvidia-smi topo -p2p, which says who may reach whom; nvidia-smi topo -m says "
    "what links there are, as does NCCL_TOPO_DUMP_FILE",
}
_RELATION = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|NV(\d{1,3})", re.ASCII)
_ONE = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|NV\d{1,2}", re.ASCII)
_GLUED = re.compile(rf"(?:{_ONE.pattern}){{2,}}", re.ASCII)
_RULE = re.compile(r"^[ \t:-]*$")
_LEGEND = re.compile(r"^[ \t]*NIC\d+:\s*(\S+)", re.ASCII | re.MULTILINE)
_SAME_SWITCH, _SAME_SOCKET = {"PIX", "PXB"}, {"PIX", "PXB", "PHB", "NODE"}
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_MAX_LINKS = 18
_COLUMNS = 3  # of affinity: to CPUs, to NUMA nodes, and the NUMA node that a GPU is


@dataclass(frozen=True, slots=True)
class _Matrix:
    names: list[str]
    kinds: list[int]
    relation: list[list[str]]
    affinity: list[list[str]]
    text: str

    @property
    def gpus(self) -> list[int]:
        return [i for i, kind in enumerate(self.kinds) if kind == GPU]

    @property
    def is_grace(self) -> bool:
        """Whether GPUs are NUMA nodes of their own."""
        own = [self.affinity[i][2] for i in self.gpus if len(self.affinity[i]) == _COLUMNS]
        return bool(own) and all(is_whole(text) for text in own)

    def is_same(self, other: _Matrix) -> bool:
        """Whether both say the same of the same devices, such as those of two machines of one kind."""
        return self.kinds == other.kinds and self.relation == other.relation

    def pairs(self) -> Iterable[tuple[int, int, str]]:
        return ((a, b, self.relation[a][b]) for a, b in itertools.combinations(range(len(self.names)), 2))

    def links(self, a: int, b: int) -> int:
        """NVLinks between two devices."""
        relation = self.relation[a][b]
        return int(relation[2:]) if relation.startswith("NV") else 0

    def components(self, relations: set[str], *, by_affinity: bool = False) -> list[list[int]]:
        """Devices that some chain of `relations` joins, each set in order, sets in the order of their first member.

        NVLink hides how two GPUs are connected otherwise; with `by_affinity` those of equal CPU and NUMA affinity, as
        far as the matrix has these columns, belong together too.
        """
        group = list(range(len(self.names)))
        for a, b, relation in self.pairs():
            near = by_affinity and self.affinity[a][:2] == self.affinity[b][:2] != []
            if (near or relation in relations) and group[a] != group[b]:
                old = group[b]
                group = [group[a] if g == old else g for g in group]
        return [[i for i, g in enumerate(group) if g == key] for key in dict.fromkeys(group)]

    def sockets(self) -> list[list[int]]:
        """Devices of each socket.

        GPUs beside Grace are NUMA nodes of their own, so that their CPU's NICs are said to be on another one: where
        there are as many sockets of NICs as of GPUs, these are the same in order.
        """
        sockets = self.components(_SAME_SOCKET, by_affinity=True)
        with_gpus = [s for s in sockets if any(self.kinds[i] == GPU for i in s)]
        others = [s for s in sockets if s not in with_gpus]
        if self.is_grace and len(others) == len(with_gpus):
            return [sorted(a + b) for a, b in zip(with_gpus, others, strict=True)]
        return sockets


@dataclass(frozen=True, slots=True)
class _Island:
    """GPUs that NVLinks join, by a switch or directly; one that none joins is alone.

    Parameters
    ----------
    gpus : list of int
        Its GPUs.
    used : list of int
        NVLinks of each of them.
    is_switched : bool
        Whether they lead to a switch.
    """

    gpus: list[int]
    used: list[int]
    is_switched: bool


def read_nvidia_smi(
    path: str | Path, gpu: str | None = None, sm: int | None = None, nvlink: Bandwidth | None = None,
    nvls: bool | None = None, pxn: bool | None = None, pcie: Bandwidth | None = None, nic: Bandwidth | None = None,
) -> Network:  # fmt: skip
    """Read a machine from the output of ``nvidia-smi topo -m``, or of ``rocm-smi --showtopo``.

    Parameters
    ----------
    path : path
        The text, as it was printed.
    gpu : str, optional
        Generation of the GPUs, such as hopper; default: that of a name in the text, else what the number of NVLinks
        points to, and if it points to several, the likeliest one, which the network's hardware calls a guess.
    sm : int, optional
        Compute capability of the GPUs, 90 for 9.0, in place of `gpu`.
    nvlink : float, bytes/s, optional
        Bandwidth of all NVLinks of the GPU that has most; default: their number times the rate of one.
    nvls : bool, optional
        Whether NVSwitches can add (NVLink SHARP); default: with GPUs since Hopper.
    pxn : bool, optional
        Whether a GPU sends over NVLink and the NIC of another one where that is on the receiver's rail; default: where
        one switch joins all GPUs and there are NICs.
    pcie : float, bytes/s, optional
        Bandwidth of the PCIe link of a GPU and of the uplink of a PCIe switch; default: what such GPUs usually have.
    nic : float, bytes/s, optional
        Bandwidth of a NIC; default: that of its PCIe link, since the matrix does not have it.

    Returns
    -------
    Network
        ``gpu0 …`` and ``nic0 …`` in the order of the matrix; ``cpu0 …`` for what SYS separates; ``pcie0 …`` for what
        PIX and PXB join; ``nvswitch0 …`` for each set of GPUs that have too few NVLinks to reach each other directly.

    Raises
    ------
    InputError
        Without a matrix, or with several that differ, or if a cell is not known, or two cells contradict each other;
        names the line.
    """
    if SIGN.search(text := _ESCAPES.sub("", read_text(path))):
        return read_rocm_smi(path, text, gpu, nvlink, pcie)
    matrix = _read_matrix(path, text)
    islands = _islands(matrix)
    made = of_user(path, gpu, sm, "nvidia") or of_names(matrix.text) or _guessed(matrix, islands)
    pcie = pcie if pcie is not None else made.pcie
    whole = len(islands) == 1 and islands[0].is_switched
    pxn = pxn if pxn is not None else whole and NIC in matrix.kinds
    parts = Parts()
    numbers = itertools.count(), itertools.count()
    for kind in matrix.kinds:
        if kind == GPU:
            parts.add(f"gpu{next(numbers[0])}", kind, forwards=pxn)
        else:
            parts.add(f"nic{next(numbers[1])}", kind)
    _plug(parts, matrix, pcie, nic)
    parts.join_cpus(made.inter_cpu)
    most = max((n for island in islands for n in island.used), default=0)
    rate = made.link if nvlink is None else nvlink / max(1, most)
    _add_nvlinks(parts, matrix, islands, rate, aggregates=nvls if nvls is not None else made.has_nvls)
    guessed = ("nic",) if nic is None and NIC in matrix.kinds else ()
    net = transport_of_nics([*matrix.names, *_LEGEND.findall(matrix.text)])
    hardware = made.facts(*guessed, cpu="arm" if matrix.is_grace else "", net=net)
    return dataclasses.replace(parts.build(str(path)), hardware=hardware)


def _plug(parts: Parts, matrix: _Matrix, pcie: float, nic: float | None) -> None:
    """Add sockets and PCIe switches, and plug all devices in."""
    port = [pcie if kind == GPU or nic is None else nic for kind in matrix.kinds]
    switches, hubs = matrix.components(_SAME_SWITCH), itertools.count()
    for s, socket in enumerate(matrix.sockets()):
        cpu = parts.add(f"cpu{s}", CPU)
        for members in (m for m in switches if m[0] in socket):
            devices = [(i, port[i]) for i in members]
            if len(devices) == 1:
                parts.leaf(cpu, devices[0])
            else:
                parts.crossing(cpu, parts.pcie_switch(f"pcie{next(hubs)}", devices), pcie)


def _islands(matrix: _Matrix) -> list[_Island]:
    """Split the GPUs by NVLink.

    With a switch every pair is said to have all links of the GPU that has fewer, so that a GPU seems to have more than
    there are. Two GPUs with all links of one between them may have either, at the same rate; a switch is commoner.
    """
    joined = {f"NV{matrix.links(a, b)}" for a, b, _ in matrix.pairs() if matrix.links(a, b)}
    islands = []
    for gpus in (m for m in matrix.components(joined) if matrix.kinds[m[0]] == GPU):
        of = [[matrix.links(a, b) for b in gpus] for a in gpus]
        is_switched = max(map(sum, of)) > _MAX_LINKS or (len(gpus) == 2 and of[0][1] == _MAX_LINKS)
        islands.append(_Island(gpus, [max(row) if is_switched else sum(row) for row in of], is_switched))
    return islands


def _guessed(matrix: _Matrix, islands: Sequence[_Island]) -> GpuGeneration:
    """Return the GPU that the island with most NVLinks points to."""
    island = max(islands, key=lambda one: (max(one.used), len(one.gpus)))
    return of_links(
        max(island.used), len(island.gpus), is_switched=island.is_switched, is_grace=matrix.is_grace
    )  # fmt: skip


def _add_nvlinks(parts: Parts, matrix: _Matrix, islands: Sequence[_Island], rate: float, *, aggregates: bool) -> None:
    """Join the GPUs of each island, by a switch or directly; `rate` is that of one NVLink."""
    switches = itertools.count()
    for island in islands:
        if island.is_switched:
            speed = [n * rate for n in island.used]
            parts.join_gpus(
                f"nvswitch{next(switches)}", dict(zip(island.gpus, speed, strict=True)), aggregates=aggregates
            )
        else:
            pairs = itertools.combinations(island.gpus, 2)
            parts.mesh({(a, b): n * rate for a, b in pairs if (n := matrix.links(a, b))}, island.gpus)


def _read_matrix(path: str | Path, text: str) -> _Matrix:
    for pattern, what in _OTHER_TABLES.items():
        if re.search(pattern, text, re.MULTILINE):
            raise InputError(f"{path}: is {what}")
    lines = [_RULE.sub("", line.replace("|", " ")) for line in "".join(lines_of_log(text)).splitlines()]
    headers = [n for n, line in enumerate(lines) if _is_header(line.split())]
    if not headers:
        raise InputError(f"{path}: no matrix of nvidia-smi topo -m: no line names its columns, beginning with GPU0")
    first = _matrix_below(path, lines, headers[0])
    for header in headers[1:]:
        if _DEVICE.fullmatch((*lines[header].split(), "")[1]) and not first.is_same(_matrix_below(path, lines, header)):
            raise InputError(f"{path}: the matrix from line {header + 1} on is of another machine than that from line "
                             f"{headers[0] + 1} on: give each a file of its own")  # fmt: skip
    return first


def _matrix_below(path: str | Path, lines: list[str], header: int) -> _Matrix:
    """Read the matrix whose columns a line names."""
    names = list(itertools.takewhile(_DEVICE.fullmatch, lines[header].split()))
    rows: dict[str, tuple[int, list[str]]] = {}
    end = len(lines)
    for n, line in enumerate(lines[header + 1 :], header + 2):
        cells = line.split()
        if not cells and not rows:  # the line below the header of a table in Markdown
            continue
        if not cells or cells[0] not in names:
            if cells and _DEVICE.fullmatch(cells[0]) and _RELATION.fullmatch(cells[-1]):
                raise InputError(f"{path}, line {n}: there is a row {cells[0]}, but no column")
            end = n - 1
            break
        if cells[0] in rows:
            raise InputError(f"{path}, line {n}: a second row {cells[0]}")
        rows[cells[0]] = n, _cut(cells[1:], len(names))
    for n, cells in rows.values():
        if len(cells) < len(names):
            raise InputError(f"{path}, line {n}: {len(cells)} cells, but there are {len(names)} columns of devices")
        for cell in cells[: len(names)]:
            if not _RELATION.fullmatch(cell):
                raise InputError(f"{path}, line {n}: {cell!r} is not one of X, NV#, PIX, PXB, PHB, NODE, SYS")
    gpus = [name for name in names if name.startswith("GPU")]
    for name in gpus:
        if name not in rows:
            raise InputError(f"{path}, line {header + 1}: there is a column {name}, but no row")
    for j, name in enumerate(names):
        if name not in rows:  # a NIC's, which was left out: what joins it to GPUs is in its column
            rows[name] = 0, [rows[gpu][1][j] if gpu in gpus else "X" if gpu == name else "SYS" for gpu in names]
    left_out = [i for i, name in enumerate(names) if not rows[name][0]]
    for i, j in itertools.product(left_out, range(len(names))):  # of two NICs of which one has a row, that one says it
        if rows[names[j]][0]:
            rows[names[i]][1][j] = rows[names[j]][1][i]
    matrix = [rows[name][1] for name in names]
    for a, b in itertools.product(range(len(names)), repeat=2):
        if matrix[a][b] != matrix[b][a] or (matrix[a][b] == "X") != (a == b):
            raise InputError(f"{path}, line {rows[names[a]][0]}: {names[a]} is {matrix[a][b]} to {names[b]}, "
                             f"but {names[b]} is {matrix[b][a]} to {names[a]}")  # fmt: skip
    affinity = [rows[name][1][len(names) : len(names) + _COLUMNS] for name in names]
    beside = "\n".join(lines[:header] + lines[end:])
    return _Matrix(names, [GPU if n.startswith("GPU") else NIC for n in names], matrix, affinity, beside)


def _cut(cells: list[str], n: int) -> list[str]:
    """Cut cells of devices that a paste has glued together, as PIXNODE: blanks are lost where a line was wrapped."""
    cut = list[str]()
    for i, cell in enumerate(cells):
        if len(cut) >= n:
            return [*cut, *cells[i:]]
        cut += _ONE.findall(cell) if _GLUED.fullmatch(cell) else [cell]
    return cut


def _is_header(words: list[str]) -> bool:
    return words[:1] == ["GPU0"] and not (len(words) > 1 and _RELATION.fullmatch(words[1]))
