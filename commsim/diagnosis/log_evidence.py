"""How many times as likely the lines of a log make each cause, beside what the machines should say.

A number by itself cannot tell a NIC on the wrong socket from half of the NICs; a line can. So facts come before the
likelihood of the times: a line that shows a cause outweighs any difference of two shapes that the errors allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network_queries import units
from commsim.diagnosis.causes.ground import Ground, links_between, nics_of_machines
from commsim.diagnosis.log_facts import LogFacts
from commsim.nccl.prediction import predict

# How many times as likely a line makes what it shows, and what it rules out; and what it only suggests.
SHOWN, EXCLUDED, SUGGESTED = 50.0, 0.02, 4.0
# A list of fewer NICs than the machine has is the cause itself, and no sign of it: no times speak against it.
CERTAIN = 1e6
# Part of a rate or of a number of channels from which on it is as it should be.
ENOUGH = 0.8
# Sizes of chosen algorithms that are held against the model's choice.
MOST_CHOICES = 12
# Variables that are a cause where they have such a value; "" stands for any.
SETTINGS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "NCCL_IB_DISABLE": ("ib_disabled_tcp_sockets", ("1",)),
    "NCCL_NET": ("ib_disabled_tcp_sockets", ("socket", "Socket", "SOCKET")),
    "NCCL_NVLS_ENABLE": ("nvls_off_or_unavailable", ("0",)),
    "NCCL_ALGO": ("wrong_algorithm_or_protocol_forced", ("",)),
    "NCCL_PROTO": ("wrong_algorithm_or_protocol_forced", ("",)),
    "NCCL_MAX_NCHANNELS": ("too_few_channels_or_qps", ("",)),
    "NCCL_MAX_CTAS": ("too_few_channels_or_qps", ("",)),
    "NCCL_P2P_DISABLE": ("pcie_p2p_or_acs", ("1",)),
    "NCCL_P2P_LEVEL": ("pcie_p2p_or_acs", ("LOC", "0")),
    "NCCL_NET_GDR_LEVEL": ("gpudirect_rdma_off", ("LOC", "0")),
    "NCCL_NET_GDR_DISABLE": ("gpudirect_rdma_off", ("1",)),
    "NCCL_COLLNET_ENABLE": ("sharp_expected_but_off", ("0",)),
}


@dataclass(frozen=True, slots=True)
class Due:
    """What the lines of a log should say of healthy machines.

    Parameters
    ----------
    nics : int
        NICs that a machine has.
    nic : float, bytes/s
        Rate of a NIC; 0 where there is none.
    net : str
        Network between the machines, as hardware facts name it.
    channels : int
        Channels of collectives.
    pcie : float, bytes/s
        Rate of a GPU's PCIe link; 0 where the network does not say it.
    choices : mapping of int to (str, str)
        The model's algorithm and protocol by size.
    """

    nics: int = 0
    nic: float = 0.0
    net: str = ""
    channels: int = 0
    pcie: float = 0.0
    choices: Mapping[int, tuple[str, str]] = field(default_factory=dict)


def due_of(ground: Ground, facts: LogFacts) -> Due:
    """Return what the lines should say of a ground.

    Parameters
    ----------
    ground : Ground
        Ground without a fault.
    facts : LogFacts
        Facts of the log, whose sizes are asked.
    """
    site, network = ground.site(), ground.network
    unit = units(network)
    node = int(ground.nodes[0])
    plugs = (network.src == node) & (unit[network.dst] == unit[node]) & (network.metric != NVLINK_METRIC)
    sizes = [one.size for one in facts.choices if one.operation in (ground.operation, "")][:MOST_CHOICES]
    chosen = {size: predict(site, ground.operation, size).how.partition("/") for size in sizes}
    return Due(
        min(map(len, nics_of_machines(ground))),
        float(network.bandwidth[links_between(network)].max(initial=0.0)),
        ground.facts.get("net", ""),
        site.max_channels,
        float(network.bandwidth[plugs].max(initial=0.0)),
        {size: (algorithm, protocol) for size, (algorithm, _, protocol) in chosen.items()},
    )


def evidence_of(bad: LogFacts, due: Due, healthy: LogFacts | None = None) -> dict[str, float]:
    """Return how many times as likely the lines of a log make each cause.

    Parameters
    ----------
    bad : LogFacts
        Facts of the slow log.
    due : Due
        What they should be.
    healthy : LogFacts, optional
        Facts of the healthy log of the same machines.
    """
    found: dict[str, float] = {}

    def say(label: str, factor: float) -> None:
        found[label] = found.get(label, 1.0) * factor

    for label, is_so in (*_of_nics(bad, due), *_of_paths(bad), *_of_choices(bad, due), *_of_settings(bad)):
        say(label, SHOWN if is_so else EXCLUDED)
    if 0 < bad.nics < due.nics:
        say("half_or_fewer_nics_used", CERTAIN)
    if bad.is_virtual:
        say("virtualisation_or_topology_file_missing", SUGGESTED)
    if healthy is not None and healthy.release and bad.release:
        say("version_regression", SHOWN if healthy.release != bad.release else EXCLUDED)
    return found


def numbers_of_log(bad: LogFacts) -> dict[str, float]:
    """Return the numbers that the lines of a log state of causes: NICs, rate of the slowest port in Gb/s, channels.

    Parameters
    ----------
    bad : LogFacts
        Facts of the slow log.
    """
    found = {
        "half_or_fewer_nics_used": float(bad.nics),
        "nic_rate_degraded": min(bad.speeds, default=0) / 1000,
        "too_few_channels_or_qps": float(bad.channels),
    }
    return {label: number for label, number in found.items() if number}


def _of_nics(bad: LogFacts, due: Due) -> list[tuple[str, bool]]:
    """Return what the list of NICs shows: their number, their rates, their link layer."""
    found = []
    if bad.nics and due.nics > 1:
        found.append(("half_or_fewer_nics_used", bad.nics < due.nics))
    elif due.nics > 1 and (named := bad.environment.get("NCCL_IB_HCA", "")) and named[0] not in "^=":
        count = len(named.split(","))
        if count > 1 or ":" in named or any(end.isdigit() for end in named[-1:]):
            found.append(("half_or_fewer_nics_used", count < due.nics))
    if bad.speeds and due.nic:
        found.append(("nic_rate_degraded", min(bad.speeds) * 125e3 < ENOUGH * due.nic))
    if bad.layers and due.net == "infiniband":
        found.append(("wrong_interface_or_ethernet", "RoCE" in bad.layers))
    return found


def _of_paths(bad: LogFacts) -> list[tuple[str, bool]]:
    """Return what the connections show: sockets, bytes over the host, GPUs that do not reach each other."""
    found = []
    is_socket = "socket" in bad.network
    if bad.network:
        found.append(("ib_disabled_tcp_sockets", is_socket))
    if bad.unloaded or bad.far:
        found += [("gpudirect_rdma_off", bad.unloaded > 0), ("numa_or_affinity", bad.far > 0 and not bad.unloaded)]
    elif bad.direct or bad.staged:
        is_staged = bad.staged > bad.direct and not is_socket
        found += [(label, is_staged) for label in ("gpudirect_rdma_off", "numa_or_affinity")]
    if bad.peers or bad.shared:
        found.append(("pcie_p2p_or_acs", bad.shared > bad.peers))
    return found


def _of_choices(bad: LogFacts, due: Due) -> list[tuple[str, bool]]:
    """Return what channels, PCIe rates, multicast and chosen algorithms show."""
    found = []
    if bad.channels and due.channels:
        found.append(("too_few_channels_or_qps", bad.channels < ENOUGH * due.channels))
    if bad.pcie and due.pcie:
        found.append(("pcie_gen_or_width", bad.pcie * 1e9 < ENOUGH * due.pcie))
    if bad.nvls:
        found.append(("nvls_off_or_unavailable", bad.nvls == "off"))
    pairs = [((one.algorithm, one.protocol), due.choices[one.size]) for one in bad.choices if one.size in due.choices]
    if pairs:
        other = sum(chosen != ours for chosen, ours in pairs)
        found.append(("wrong_algorithm_or_protocol_forced", 2 * other > len(pairs)))
    return found


def _of_settings(bad: LogFacts) -> list[tuple[str, bool]]:
    """Return the causes that variables set; a variable that is there twice, such as two of one cause, counts once."""
    causes = {
        label for name, (label, values) in SETTINGS.items()
        if name in bad.environment and ("" in values or bad.environment[name] in values)
    }  # fmt: skip
    if bad.network and "socket" not in bad.network:  # what NCCL says that it uses comes before what was set
        causes.discard("ib_disabled_tcp_sockets")
    return [(label, True) for label in sorted(causes)]
