"""Which GPU a machine's file means: by what the user says, by name, by PCI device, or by its NVLinks.

The generation is a guess where the file leaves it open, and the network's ``hardware`` says so.

References
----------
NCCL 2.30 and RCCL 2.22, ``src/graph/topo.h``: rates of a link. The PCI ID repository: devices. NVIDIA's data sheets:
links of a GPU.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from commsim.core.errors import InputError
from commsim.core.machines.hardware import GPU_MAKERS, generation_of, write_hardware

# Largest compute capability that is one; RCCL writes the number of compute units as sm.
MOST_SM = 199
_NVLINK_GBS = ((100, 40.1), (90, 20.6), (87, 20.0), (86, 12.0), (70, 20.0), (60, 18.0))
# GB/s of an xGMI link; RCCL's, and for CDNA 4 that of the data sheet, on which its costs are fitted.
_XGMI_GBS = {"vega": 24.0, "cdna1": 24.0, "cdna2": 36.0, "cdna3": 48.0, "cdna4": 76.8}
# The compute capability that stands for a generation of NVIDIA's.
_SM_OF = {"volta": 70, "turing": 75, "ampere": 80, "ada": 89, "hopper": 90, "blackwell": 100}
# GB/s of the PCIe link (x16) and of the link between sockets that GPUs of a generation usually come with, as NCCL
# counts them: Skylake, Rome, Sapphire Rapids, Emerald Rapids.
_USUAL_GBS = {60: (12, 10), 70: (12, 10), 75: (12, 10), 80: (24, 16), 89: (24, 22), 90: (48, 22), 100: (48, 40)}
# Names by compute capability; short ones, with @, count only behind the maker's.
_NAMED = {
    60: "P100", 70: "V100S? TITAN\\s*V", 75: "@T4 RTX\\s*[4568]000(?!\\s*(?:SFF\\s*)?Ada) TITAN\\s*RTX",
    80: "A100X? A800 A30X?", 86: "@A2 @A10 A10[GM] @A16 A40 A[456]000 A5500 RTX\\s*30[5-9]0(?:\\s*Ti)?",
    89: "@L2 @L4 @L20 L40[GS]? RTX\\s*40[5-9]0(?:\\s*Ti)? RTX\\s*[456]\\d00\\s*(?:SFF\\s*)?Ada",
    90: "H20 H100 H200 H800 GH200", 100: "B100 B200 GB200", 103: "B300 GB300",
    120: "RTX\\s*PRO\\s*\\d000 RTX\\s*50[5-9]0(?:\\s*Ti)?",
}  # fmt: skip
_MADE = "(?:NVIDIA|Tesla|GRID)\\s+"
_NAME = {
    sm: re.compile(rf"(?<![\w.])(?:{names.replace('@', _MADE).replace(' ', '|')})(?![\w.])", re.ASCII)
    for sm, names in _NAMED.items()
}
# By the upper byte of a PCI device's number: the chip, as a compute capability.
_NVIDIA_CHIPS = {
    0x15: 60, 0x1D: 70, 0x1E: 75, 0x1F: 75, 0x21: 75, 0x20: 80, 0x22: 86, 0x24: 86, 0x25: 86, 0x26: 89, 0x27: 89,
    0x28: 89, 0x23: 90, 0x29: 100, 0x31: 103, 0x2B: 120, 0x2C: 120, 0x2D: 120, 0x2F: 120,
}  # fmt: skip
_AMD_CHIPS = {0x66: "vega", 0x68: "vega", 0x73: "cdna1", 0x74: "cdna3", 0x75: "cdna4"}
_MI200 = (0x7408, 0x740C, 0x740F, 0x7410)
_GCN = {"900": "vega", "906": "vega", "908": "cdna1", "910": "cdna2", "90a": "cdna2", "940": "cdna3", "941": "cdna3",
        "942": "cdna3", "950": "cdna4"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GpuGeneration:
    """A GPU, as far as rates depend on it.

    Parameters
    ----------
    generation : str
        One of ``GPU_MAKERS``; empty for those before Volta.
    sm : int
        Compute capability of NVIDIA's, 90 for 9.0; 0 for AMD's.
    is_guessed : bool
        Whether nothing in the file decides it.
    """

    generation: str
    sm: int = 0
    is_guessed: bool = False

    @property
    def link(self) -> float:
        """Bandwidth of one NVLink or xGMI link, bytes/s."""
        if self.generation in _XGMI_GBS:
            return 1e9 * _XGMI_GBS[self.generation]
        return 1e9 * next((rate for least, rate in _NVLINK_GBS if self.sm >= least), 20.0)

    @property
    def pcie(self) -> float:
        """Bandwidth of the PCIe link that it usually has, bytes/s."""
        return 1e9 * self._usual[0]

    @property
    def inter_cpu(self) -> float:
        """Bandwidth between the sockets that it usually comes with, bytes/s."""
        return 1e9 * self._usual[1]

    @property
    def _usual(self) -> tuple[float, float]:
        return next(_USUAL_GBS[least] for least in sorted(_USUAL_GBS, reverse=True) if self.sm >= least)

    @property
    def has_nvls(self) -> bool:
        """Whether an NVSwitch that it is on can add for it (NVLink SHARP)."""
        return self.sm >= _SM_OF["hopper"]

    def facts(self, *guessed: str, **more: str) -> str:
        """Write it, other facts, and the names of what else is guessed, as ``Network.hardware`` has them."""
        names = ("gpu",) * self.is_guessed + guessed
        facts = {"gpu": self.generation, **more, "guessed": "+".join(names)}
        return write_hardware({key: value for key, value in facts.items() if value})


def of_sm(sm: int) -> GpuGeneration:
    """Return a GPU of NVIDIA's by its compute capability."""
    return GpuGeneration(generation_of(sm), sm)


def of_user(path: object, gpu: str | None, sm: int | None, maker: str = "") -> GpuGeneration | None:
    """Return the GPU that the user names beside a file; None without one.

    Parameters
    ----------
    path : path
        The file, for messages.
    gpu : str, optional
        Generation.
    sm : int, optional
        Compute capability.
    maker : str
        Who made the GPUs, as the file says: nvidia or amd; empty if it does not.

    Raises
    ------
    InputError
        If one is unknown, they differ, or the file has GPUs of another maker.
    """
    if gpu is None and sm is None:
        return None
    if gpu is not None and gpu not in GPU_MAKERS:
        raise InputError(f"{path}: gpu must be one of {', '.join(GPU_MAKERS)}, got {gpu!r}")
    if sm is not None and not _NVLINK_GBS[-1][0] <= sm <= MOST_SM:
        raise InputError(f"{path}: sm must be a compute capability such as 90 for 9.0, from 60 on, got {sm}")
    told = of_sm(sm) if sm is not None else GpuGeneration(gpu or "", _SM_OF.get(gpu or "", 0))
    if gpu is not None and told.generation != gpu:
        raise InputError(f"{path}: gpu={gpu} and sm={sm} differ: sm={sm} is {told.generation or 'older than Volta'}")
    named = "nvidia" if sm is not None else GPU_MAKERS[gpu or ""]
    if maker and named != maker:
        flag = f"gpu={gpu}" if gpu is not None else f"sm={sm}"
        raise InputError(f"{path}: {flag} is {named.upper()}'s, and the file has GPUs of {maker.upper()}")
    return told


def of_names(text: str) -> GpuGeneration | None:
    """Return the oldest GPU that a text names, such as ``NVIDIA H100 80GB HBM3``; None where it names none."""
    return next((of_sm(sm) for sm, name in sorted(_NAME.items()) if name.search(text)), None)


def of_device(vendor: str, device: str) -> GpuGeneration | None:
    """Return the GPU of a PCI vendor and device, such as 0x10de and 0x2330; None for those that are not known."""
    try:
        maker, number = int(vendor, 16), int(device, 16)
    except ValueError:
        return None
    if maker == 0x10DE and number >> 8 in _NVIDIA_CHIPS:
        return of_sm(_NVIDIA_CHIPS[number >> 8])
    if maker == 0x1002 and (number in _MI200 or number >> 8 in _AMD_CHIPS):
        return GpuGeneration("cdna2" if number in _MI200 else _AMD_CHIPS[number >> 8])
    return None


def of_gcn(name: str) -> GpuGeneration | None:
    """Return a GPU of AMD's by RCCL's name of its instruction set, such as ``gfx942`` or ``910``."""
    known = _GCN.get(name.strip().lower().removeprefix("gfx").partition(":")[0])
    return GpuGeneration(known) if known else None


def of_links(n_links: int, n_gpus: int, *, is_switched: bool, is_grace: bool = False) -> GpuGeneration:
    """Return the GPU that the number of NVLinks points to.

    Parameters
    ----------
    n_links : int
        NVLinks of a GPU; 0 for none.
    n_gpus : int
        GPUs that they join.
    is_switched : bool
        Whether they lead to an NVSwitch.
    is_grace : bool
        Whether GPUs are NUMA nodes of their own, as beside Grace.
    """
    if is_grace:  # quads of GH200 are meshes, trays of GB200 and GB300 have switches
        return of_sm(100 if is_switched else 90) if n_links else _guess(90)
    sure = {12: 80} if is_switched else {}
    if is_switched and n_links == 6 and n_gpus > 4:
        sure[6] = 70
    if not is_switched and n_gpus == 4 and n_links == 12:
        sure[12] = 80
    if n_links in sure:
        return of_sm(sure[n_links])
    if n_links == 8 and is_switched:  # H800; A800 has as many
        return _guess(90)
    if n_gpus == 2 and n_links in (2, 4):  # a bridge of a card
        return _guess({2: 75, 4: 86}[n_links])
    if not n_links:
        return _guess(89)
    return _guess(next((sm for sm, most in ((70, 6), (80, 12)) if n_links <= most), 90))


def _guess(sm: int) -> GpuGeneration:
    return dataclasses.replace(of_sm(sm), is_guessed=True)
