"""One machine from the text that ``rocm-smi --showtopo`` prints: which GPUs xGMI joins, and on which socket each is.

The matrices have the kind of a link and its hops, not how many links there are: one between two GPUs is taken, as on
platforms of eight; ``nvlink=`` gives the rate of all links of a GPU. NICs are not in it.

References
----------
rocm_smi_lib, ``python_smi_tools/rocm_smi.py``, ``showTopology``: matrices of weights, hops and kinds, then NUMA nodes.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.machines.parts import Parts
from commsim.core.network import CPU, GPU, Network
from commsim.core.units import Bandwidth
from commsim.formats.logs.log_lines import lines_of_log

from .gpu_models import GpuGeneration, of_user

SIGN = re.compile(r"(?:Hops|Link Type) between two GPUs|ROCm System Management|^GPU0[ \t].*\bXGMI\b", re.MULTILINE)
_HOPS, _KINDS = re.compile(r"Hops between two GPUs"), re.compile(r"Link Type between two GPUs")
_NUMA = re.compile(r"GPU\[(\d{1,3})\]\s*:?.*Numa Node:\s*(\d{1,3})", re.ASCII)
_ROW = re.compile(r"\s*\**GPU(\d{1,3})\**\s", re.ASCII)
_NAMES = {
    "cdna4": r"MI35[05]X?|gfx950", "cdna3": r"MI3(?:00|08|25)[AX]?|gfx942", "cdna2": r"MI2[15]0X?|gfx90a",
    "cdna1": r"MI100|gfx908",
}  # fmt: skip
# Bytes/s of PCIe x16 and of the link between sockets as RCCL counts them: generation 5 since CDNA 3; every CPU of AMD.
_PCIE, _OLDER_PCIE, _BETWEEN_SOCKETS = 48e9, 24e9, 16e9
_XGMI, _OTHER = "XGMI", "PCIE"


def read_rocm_smi(
    path: str | Path, text: str, gpu: str | None = None, links: Bandwidth | None = None, pcie: Bandwidth | None = None
) -> Network:
    """Read a machine from the output of ``rocm-smi --showtopo``.

    Parameters
    ----------
    path : path
        The file, for messages.
    text : str
        What is in it.
    gpu : str, optional
        Generation of the GPUs, such as cdna3; default: that of a name in the text, else cdna3, which is said to be a
        guess.
    links : float, bytes/s, optional
        Bandwidth of all xGMI links of the GPU that has most; default: one link to each GPU that is one hop away.
    pcie : float, bytes/s, optional
        Bandwidth of the PCIe link of a GPU.

    Returns
    -------
    Network
        ``gpu0 …`` in the order of the matrix, and ``cpu0 …`` for the NUMA nodes.

    Raises
    ------
    InputError
        Without a matrix of kinds of links, or if its rows do not fit each other.
    """
    lines = "".join(lines_of_log(text)).replace("|", " ").splitlines()
    kinds = _matrix(path, lines, _KINDS)
    if kinds is None:
        raise InputError(f"{path}: rocm-smi's table has no 'Link Type between two GPUs'; print it with --showtopo")
    hops = _matrix(path, lines, _HOPS) or [["1"] * len(kinds) for _ in kinds]
    n, named = len(kinds), next((name for name, words in _NAMES.items() if re.search(words, text)), "")
    made = of_user(path, gpu, None, "amd") or GpuGeneration(named or "cdna3", is_guessed=not named)
    joined = {
        (a, b) for a, b in itertools.combinations(range(n), 2) if kinds[a][b] == _XGMI and hops[a][b] == "1"
    }  # fmt: skip
    most = max((sum(one in pair for pair in joined) for one in range(n)), default=0)
    rate = made.link if links is None else links / max(1, most)
    numa = {int(match[1]): int(match[2]) for line in lines if (match := _NUMA.search(line))}
    parts = Parts()
    for one in range(n):
        parts.add(f"gpu{one}", GPU)
    sockets = sorted({numa.get(one, 0) for one in range(n)})
    cpus = {socket: parts.add(f"cpu{k}", CPU) for k, socket in enumerate(sockets)}
    usual = _PCIE if made.generation in ("cdna3", "cdna4") else _OLDER_PCIE
    for one in range(n):
        parts.leaf(cpus[numa.get(one, 0)], (one, pcie if pcie is not None else usual))
    parts.join_cpus(_BETWEEN_SOCKETS)
    parts.mesh(dict.fromkeys(sorted(joined), rate), range(n))
    return dataclasses.replace(parts.build(str(path)), hardware=made.facts(cpu="amd"))


def _matrix(path: str | Path, lines: list[str], title: re.Pattern[str]) -> list[list[str]] | None:
    """Return the cells of the matrix below a title; None where there is none."""
    begin = next((i for i, line in enumerate(lines) if title.search(line)), None)
    if begin is None:
        return None
    rows = list[list[str]]()
    for number, line in enumerate(lines[begin + 1 :], begin + 2):
        match, cells = _ROW.match(line), line.replace("*", " ").split()[1:]
        if match and cells and not cells[0].startswith("GPU"):
            if int(match[1]) != len(rows):
                raise InputError(f"{path}, line {number}: the row of GPU{len(rows)} is missing")
            rows.append([cell.upper() for cell in cells])
        elif rows and not match:
            break
    for number, row in enumerate(rows):
        if len(row) != len(rows):
            raise InputError(f"{path}: the row of GPU{number} has {len(row)} cells, and there are {len(rows)} GPUs")
        if title is _KINDS and (bad := {*row} - {_XGMI, _OTHER, "0", "X", "N/A"}):
            raise InputError(f"{path}: {sorted(bad)[0]!r} of GPU{number} is none of {_XGMI}, {_OTHER}, 0")
    if any(rows[a][b] != rows[b][a] for a, b in itertools.combinations(range(len(rows)), 2)):
        raise InputError(f"{path}: the matrix below {title.pattern!r} is not the same both ways")
    return rows or None
