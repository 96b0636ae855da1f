"""What a log says beside its table: the hosts, NCCL's release, its environment, NICs, transports and choices.

These are lines of nccl-tests and of ``NCCL_DEBUG=INFO``. Each makes some causes more likely and others less; a number
by itself cannot tell a NIC on the wrong socket from half of the NICs, a line can.

References
----------
NCCL 2.30: ``src/init.cc``, ``src/transport`` (``net_ib``, ``net_socket.cc``, ``net.cc``, ``p2p.cc``, ``shm.cc``);
nccl-tests 2.17, ``src/common.cu``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_bytes
from commsim.formats.measurement import MAX_LOG_BYTES

# How many times as likely a line makes what it shows, and what it rules out.
SHOWN, EXCLUDED = 50.0, 0.02
_VERSION = re.compile(r"NCCL version (\d+)\.(\d+)(?:\.(\d+))?")
_DEVICE = re.compile(r"#\s+Rank\s+\d+\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+) device")
_IB = re.compile(r"NET/IB : Using ((?:\[\d+\]\S+\s*)+)")
_ENV = re.compile(r"\b(NCCL_[A-Z0-9_]+) set (?:by environment )?to (\S+?)\.?(?:\s|$)")
_NETWORK = re.compile(r"Using network (\S.{0,60})")
_VIA_NET = re.compile(r"via NET/(\S+?)/\d+(\S*)")
_SHARED, _PEERS = re.compile(r"via SHM/"), re.compile(r"via P2P/")


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the lines of a log say.

    Parameters
    ----------
    hosts : tuple of str
        Names of the hosts in the table of ranks; empty where there is none.
    release : tuple of int
        NCCL's release; empty where it is not said.
    nics : int
        NICs that a host's NCCL lists; 0 where it lists none.
    environment : mapping of str to str
        Variables of NCCL that its lines name.
    network : str
        What NCCL says that it uses between machines, in lower case.
    direct, staged : int
        Connections over the network with and without GPUDirect RDMA.
    peers, shared : int
        Connections inside machines by peer access and by the host's memory.
    nvls : str
        ``on``, ``off``, or empty where no line is about NVLink SHARP.
    """

    hosts: tuple[str, ...] = ()
    release: tuple[int, ...] = ()
    nics: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    network: str = ""
    direct: int = 0
    staged: int = 0
    peers: int = 0
    shared: int = 0
    nvls: str = ""


def read_log_facts(path: str) -> LogFacts:
    """Read what a log says beside its table.

    Parameters
    ----------
    path : str
        A log; of a folder, or of a file that is too large for one, nothing is known.
    """
    try:
        return log_facts(read_bytes(path, MAX_LOG_BYTES).decode("utf-8", "replace").splitlines())
    except InputError:
        return LogFacts()


def log_facts(lines: Iterable[str]) -> LogFacts:
    """Collect the facts of lines."""
    hosts: dict[str, None] = {}
    environment: dict[str, str] = {}
    release: tuple[int, ...] = ()
    nics, network, nvls = 0, "", ""
    counts = dict.fromkeys(("direct", "staged", "peers", "shared"), 0)
    for line in lines:
        if found := _DEVICE.search(line):
            hosts[found[1]] = None
        if (found := _VERSION.search(line)) and not release:
            release = tuple(int(part) for part in found.groups() if part)
        if found := _IB.search(line):
            nics = max(nics, len(re.findall(r"\[\d+\]", found[1])))
        if found := _ENV.search(line):
            environment[found[1]] = found[2]
        if found := _NETWORK.search(line):
            network = found[1].strip().lower()
        if found := _VIA_NET.search(line):
            counts["direct" if "GDRDMA" in found[2] else "staged"] += 1
        counts["shared"] += bool(_SHARED.search(line))
        counts["peers"] += bool(_PEERS.search(line))
        if "NVLS multicast support is" in line:
            nvls = "off" if "not available" in line else "on"
    return LogFacts(tuple(hosts), release, nics, environment, network, nvls=nvls, **counts)


def evidence_of(bad: LogFacts, n_nics: int, healthy: LogFacts | None = None) -> dict[str, float]:
    """Return how many times as likely the lines of a log make each cause.

    Parameters
    ----------
    bad : LogFacts
        Facts of the slow log.
    n_nics : int
        NICs that a machine has.
    healthy : LogFacts, optional
        Facts of the healthy log of the same machines.
    """
    found: dict[str, float] = {}

    def say(label: str, is_so: bool) -> None:
        found[label] = found.get(label, 1.0) * (SHOWN if is_so else EXCLUDED)

    if bad.nics and n_nics > 1:
        say("half_or_fewer_nics_used", bad.nics < n_nics)
    if bad.network:
        say("ib_disabled_tcp_sockets", "socket" in bad.network)
    elif bad.environment.get("NCCL_IB_DISABLE") == "1":
        say("ib_disabled_tcp_sockets", True)
    if bad.direct or bad.staged:
        is_staged = bad.staged > bad.direct and "socket" not in bad.network
        for label in ("gpudirect_rdma_off", "numa_or_affinity"):
            say(label, is_staged)
    if bad.peers or bad.shared:
        say("pcie_p2p_or_acs", bad.shared > bad.peers)
    if bad.nvls or "NCCL_NVLS_ENABLE" in bad.environment:
        say("nvls_off_or_unavailable", bad.nvls == "off" or bad.environment.get("NCCL_NVLS_ENABLE") == "0")
    if {"NCCL_ALGO", "NCCL_PROTO"} & bad.environment.keys():
        say("wrong_algorithm_or_protocol_forced", True)
    if {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS"} & bad.environment.keys():
        say("too_few_channels_or_qps", True)
    if healthy is not None and healthy.release and bad.release:
        say("version_regression", healthy.release != bad.release)
    return found
