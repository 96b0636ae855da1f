"""What a log says beside its table: the hosts, NCCL's release, its environment, NICs, transports and choices.

These are lines of nccl-tests and of ``NCCL_DEBUG=INFO``, and words of commands that people run beside them. What they
make of causes is in :mod:`commsim.diagnosis.log_evidence`.

References
----------
NCCL 2.8 to 2.30: ``src/init.cc``, ``src/enqueue.cc``, ``src/graph/topo.cc``, ``src/transport`` (``net_ib``,
``net_socket.cc``, ``net.cc``, ``p2p.cc``, ``shm.cc``); nccl-tests 2.17, ``src/common.cu``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_bytes
from commsim.core.registry import usual_spelling
from commsim.core.spec import is_whole
from commsim.formats.logs.log_lines import lines_of_log
from commsim.formats.measurement import MAX_LOG_BYTES

_VERSION = re.compile(r"NCCL version (\d+)\.(\d+)(?:\.(\d+))?", re.ASCII)
_LIBRARY = re.compile(r"nccl-library=(\d{5,6})\b", re.ASCII)
_DEVICE = re.compile(r"#\s+Rank\s+\d+\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+) device\s+\d+ \[\S+\] (.*\S)", re.ASCII)
_IB = re.compile(r"NET/\S+ : Using ((?:\[\d+\]\S+:\d+/(?:IB|RoCE)\S*\s*)+)", re.ASCII)
_OFI = re.compile(r"NET/OFI Selected [Pp]rovider is \S+.{0,60}\(found (\d{1,3}) nics?\)", re.ASCII)
_SPEED = re.compile(r"NET/IB.*\bspeed=(\d+)", re.ASCII)
_ENV = re.compile(r"\b(NCCL_[A-Z0-9_]+)(?: set (?:by environment )?to |=)(\S+?)\.?(?:\s|$)")
_NETWORK = re.compile(r"Using network (\S.{0,60})")
_VIA_NET = re.compile(r"via NET/([^/]+)/\d+(\S*)", re.ASCII)
_SHARED = re.compile(r"via SHM/|via direct shared memory|Could not enable P2P between|P2P is disabled between")
_PEERS = re.compile(r"via P2P/")
# NCCL says it of each pair: a GPU that reaches one NIC by peer access is far from the others of a healthy machine, too.
_REACH = re.compile(r"GPU Direct RDMA (En|Dis)abled for GPU (\S+) / HCA \S+ \(distance \d+ (?:<=|>)", re.ASCII)
_NO_PEER_MEMORY = re.compile(r"GPU Direct RDMA Disabled for HCA|GPU Direct RDMA not available|nv_peer_mem.*not loaded")
_CHANNELS = re.compile(r"\b(\d+) coll channels", re.ASCII)
_PCIE = re.compile(r"\+ PCI\[(\d{1,6}(?:\.\d{1,6})?)\] - (?:PCI|GPU|NIC|NET)/", re.ASCII)
_CHOICE = re.compile(r"(?:\b(\w+): )?\b(\d+) Bytes -> Algo (\w+) proto (\w+)", re.ASCII)
_VIRTUAL = re.compile(r"hypervisor|\bKVM\b|\bQEMU\b|VMware|\(VM\)|virtual machine", re.IGNORECASE)
# NCCL's numbers of algorithms and protocols, which releases before 2.23 print in place of names (src/include/device.h).
ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
PROTOCOLS = ("ll", "ll128", "simple")


class Choice(NamedTuple):
    """An algorithm and a protocol that a log says of a size in bytes."""

    operation: str
    size: int
    algorithm: str
    protocol: str


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the lines of a log say.

    Parameters
    ----------
    hosts, gpus : tuple of str
        Names of the hosts and of the models of GPUs in the table of ranks; empty where there is none.
    release : tuple of int
        NCCL's release; empty where it is not said.
    nics : int
        NICs that a host's NCCL lists; 0 where it lists none.
    layers : tuple of str
        Link layers of these NICs: ``IB`` and ``RoCE``.
    speeds : tuple of int, Mb/s
        Rates of ports that NCCL lists, each once.
    environment : mapping of str to str
        Variables of NCCL that its lines name.
    network : str
        What NCCL says that it uses between machines, in lower case.
    direct, staged : int
        Connections over the network with and without GPUDirect RDMA.
    far : int
        GPUs of which lines say that GPUDirect RDMA is off since NICs are too far, and of no NIC that it is on.
    unloaded : int
        Lines that say that GPUDirect RDMA is off since the kernel's module for it is missing.
    peers, shared : int
        Connections inside machines by peer access and by the host's memory.
    nvls : str
        ``on``, ``off``, or empty where no line is about NVLink SHARP.
    channels : int
        Channels of collectives; 0 where they are not said.
    pcie : float, GB/s
        Least rate of a PCIe link in the system that NCCL prints; 0 where it prints none.
    choices : tuple of Choice
        Chosen algorithms and protocols, each size once.
    is_virtual : bool
        Whether a line names a hypervisor.
    """

    hosts: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    release: tuple[int, ...] = ()
    nics: int = 0
    layers: tuple[str, ...] = ()
    speeds: tuple[int, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    network: str = ""
    direct: int = 0
    staged: int = 0
    far: int = 0
    unloaded: int = 0
    peers: int = 0
    shared: int = 0
    nvls: str = ""
    channels: int = 0
    pcie: float = 0.0
    choices: tuple[Choice, ...] = ()
    is_virtual: bool = False


class _Lines:
    """What is collected while lines are read."""

    def __init__(self) -> None:
        self.hosts, self.gpus, self.layers = dict[str, None](), dict[str, None](), dict[str, None]()
        self.speeds, self.environment = dict[int, None](), dict[str, str]()
        self.release: tuple[int, ...] = ()
        self.nics, self.channels, self.network, self.nvls = 0, 0, "", ""
        self.counts, self.pcie, self.choices = Counter[str](), 0.0, dict[Choice, None]()
        self.is_virtual = False
        self.reached, self.too_far = set[tuple[str, str]](), set[tuple[str, str]]()

    def read(self, line: str) -> None:
        """Take what one line says."""
        if found := _DEVICE.search(line):
            self.hosts[found[1]] = None
            self.gpus[found[2]] = None
        if (found := _VERSION.search(line)) and not self.release:
            self.release = tuple(int(part) for part in found.groups() if part)
        if (found := _LIBRARY.search(line)) and not self.release:
            self.release = _release_of(int(found[1]))
        if found := _ENV.search(line):
            self.environment[found[1]] = found[2]
        if "NVLS multicast support is" in line:
            self.nvls = "off" if "not available" in line else "on"
        if found := _CHANNELS.search(line):
            self.channels = max(self.channels, int(found[1]))
        if found := _CHOICE.search(line):
            self.choices[_choice(found)] = None
        if found := _PCIE.search(line):
            self.pcie = min(self.pcie or float(found[1]), float(found[1]))
        self.is_virtual = self.is_virtual or bool(_VIRTUAL.search(line))
        self._read_network(line)

    def _read_network(self, line: str) -> None:
        """Take what one line says of NICs and connections."""
        if found := _IB.search(line):
            self.nics = max(self.nics, len(re.findall(r"\[\d+\]", found[1])))
            self.layers |= dict.fromkeys(re.findall(r"/(IB|RoCE)", found[1]))
        if found := _OFI.search(line):
            self.nics = max(self.nics, int(found[1]))
        if found := _SPEED.search(line):
            self.speeds[int(found[1])] = None
        if found := _NETWORK.search(line):
            self.network = found[1].strip().lower()
        if found := _VIA_NET.search(line):
            self.counts["direct" if "GDRDMA" in found[2] else "staged"] += 1
            self.network = self.network or found[1].lower()
        self.counts["shared"] += bool(_SHARED.search(line))
        self.counts["peers"] += bool(_PEERS.search(line))
        if found := _REACH.search(line):
            (self.reached if found[1] == "En" else self.too_far).add((line[: found.start()].split(":")[0], found[2]))
        self.counts["unloaded"] += bool(_NO_PEER_MEMORY.search(line))

    def facts(self) -> LogFacts:
        """Return all that was read."""
        return LogFacts(
            tuple(self.hosts), tuple(self.gpus), self.release, self.nics, tuple(self.layers), tuple(self.speeds),
            self.environment, self.network, nvls=self.nvls, channels=self.channels, pcie=self.pcie,
            choices=tuple(self.choices), is_virtual=self.is_virtual,
            **{name: self.counts[name] for name in ("direct", "staged", "unloaded", "peers", "shared")},
            far=len(self.too_far - self.reached),
        )  # fmt: skip


def read_log_facts(path: str) -> LogFacts:
    """Read what a log says beside its table.

    Parameters
    ----------
    path : str
        A log; of a folder, or of a file that is too large for one, nothing is known.
    """
    try:
        return log_facts(lines_of_log(read_bytes(path, MAX_LOG_BYTES).decode("utf-8", "replace")))
    except InputError:
        return LogFacts()


def log_facts(lines: Iterable[str]) -> LogFacts:
    """Collect the facts of lines."""
    found = _Lines()
    for line in lines:
        found.read(line)
    return found.facts()


def _release_of(code: int) -> tuple[int, ...]:
    """Return a release of a number of NCCL's ``NCCL_VERSION``: 22707 is 2.27.7, and since 2.9 has five digits."""
    return code // 10_000, code // 100 % 100, code % 100


def _choice(found: re.Match[str]) -> Choice:
    """Return a choice in our names: ``AllReduce: 8192 Bytes -> Algo RING proto LL``.

    Older releases have numbers in place of names, and before 2.12 no operation.
    """
    operation = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", found[1] or "").lower()
    return Choice(operation, int(found[2]), _named(found[3], ALGORITHMS), _named(found[4], PROTOCOLS))


def _named(word: str, names: tuple[str, ...]) -> str:
    if is_whole(word):
        return names[int(word)] if int(word) < len(names) else word
    return usual_spelling(word.lower(), names)
