"""Links between GPUs that a partial topology file leaves to the driver: those of the board that the GPUs are sold on.

Clouds ship such files for virtual machines (NCCL_TOPO_FILE): they have the PCI devices, and NCCL asks the driver which
GPUs these are and what NVLinks they have.

References
----------
NCCL 2.30, ``src/graph/topo.cc`` and ``xml.cc`` (ncclTopoFillGpu). The PCI ID repository: devices. NVIDIA's and AMD's
data sheets of HGX and Instinct boards.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from commsim.formats.markup import Element
from topologies.hosts.mesh_host import CUBE

from .gpu_links import Device
from .gpu_models import GpuGeneration

# NVLinks of NVIDIA's devices that are sold on boards (SXM) only: A100 of 40 and 80 GB, H800, H20, H100, H200, B200.
_SXM = {0x20B0: 12, 0x20B2: 12, 0x2324: 8, 0x2329: 18, 0x2330: 18, 0x2335: 18, 0x2901: 18}
# The same by compute capability, where the file has no device; cards of these generations are seldom eight.
_BOARDS = {80: 12, 90: 18, 100: 18, 103: 18}
_MESHES = ("cdna3", "cdna4")
# GPUs of a board whose links go to NVSwitches, or of AMD to each other; boards of four have a third for each other GPU.
_SWITCHED, _FOUR = (8, 16), 4


@dataclass(frozen=True, slots=True)
class BoardLinks:
    """Links of GPUs, in the order of a file.

    Parameters
    ----------
    to_switch : int
        NVLinks of each GPU to NVSwitches.
    pairs : dict of (int, int) to int
        Links between two GPUs.
    """

    to_switch: int = 0
    pairs: dict[tuple[int, int], int] = field(default_factory=dict)


def links_of_board(top: Element, gpus: Sequence[Device], model: GpuGeneration, *, is_told: bool) -> BoardLinks:
    """Return the links that a file leaves open; none where it describes its GPUs, or they are cards.

    Parameters
    ----------
    top : Element
        The file's outermost element.
    gpus : sequence of Device
        Its GPUs.
    model : GpuGeneration
        Which GPUs they are.
    is_told : bool
        Whether the user says so.

    Raises
    ------
    InputError
        If eight GPUs or more may be anything.
    """
    n, devices = len(gpus), [_device(leaf.element) for leaf in gpus]
    if any(leaf.element.all("gpu") for leaf in gpus) or n not in (_FOUR, *_SWITCHED):
        return BoardLinks()
    links = 0
    if all(devices) and not is_told:
        links = min(_SXM.get(device, 0) for device in devices)
    elif n > _FOUR:
        if not model.generation:
            top.fail(
                f"lists {n} GPUs as PCI devices alone, for which NCCL asks the driver: give gpu=ampere, hopper or "
                "another generation behind the file's name, or take a preset such as ndv4 (commsim topo presets)"
            )
        links = _BOARDS.get(model.sm, 0)
    if links == 0 and model.generation == "volta" and n == _SWITCHED[0]:  # V100 SXM2, as of DGX-1, P3 and NDv2
        return BoardLinks(pairs=dict(CUBE))
    is_mesh = model.generation in _MESHES and n == _SWITCHED[0]
    if not is_mesh and n in _SWITCHED:
        return BoardLinks(to_switch=links)
    each = 1 if is_mesh else links // (_FOUR - 1)
    return BoardLinks(pairs=dict.fromkeys(itertools.combinations(range(n), 2), each) if each else {})


def _device(element: Element) -> int:
    """Return the number of a PCI device; 0 without one."""
    try:
        return int(element.text("device", "0"), 16)
    except ValueError:
        return 0
