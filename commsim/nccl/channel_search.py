"""The channels that NCCL's search of a regular machine comes to: how many, and how fast each.

NCCL packs as many equal channels as fit into a machine, for each of a list of rates, and keeps what carries the most in
all; then it doubles channels that are fast and few, at half the rate. Its search goes over every link; here a machine
is two numbers, a GPU's links and its NICs. ``NCCL_GRAPH_DUMP_FILE`` says what NCCL really found.

References
----------
NCCL 2.30, ``src/graph/search.cc``. 8 H100 with 8 NICs of 400 Gb/s have 8 rings of 48 GB/s, not of 45: a log of 2.28 on
RoCE ("Pattern 4, crossNic 2, nChannels 8, bw 48"), and the tuning logs of 2.27.5 in meta-pytorch/autoparallel.
"""

from __future__ import annotations

from collectives.nccl.call import NEWEST
from commsim.core.errors import InputError

from .nccl_setting import MAX_CHANNELS, SINCE_HOPPER

# Of the rate of the best channels so far: below that the search tries no others.
SLOWEST_TRIED = 0.49
_FIT = 1e-9


# Rates of a channel inside a node that the search tries, the fastest first.
CHANNEL_GBS = {
    "volta": (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3), "ampere": (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3),
    "hopper": (60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3),
    "blackwell": (90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18),
}  # fmt: skip
# The same between nodes.
CHANNEL_NET_GBS = {
    "volta": (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12),
    "ampere": (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12),
    "hopper": (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
    "blackwell": (96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
}  # fmt: skip
# The same of Blackwell before the release that has 45.1: a rack has 15 channels of 48 GB/s, as 16 of 45 carry no more,
# and 16 of 45.1 since ("Increase to 16 the number of NICs used to communicate between MNNVL domains", 2.27.3).
SIXTEEN_SINCE = (2, 27)
BEFORE_SIXTEEN_GBS = (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12)
DOUBLED_FROM_GBS = 25.0
DOUBLED_FROM_HOPPER_GBS = 50.0
FEW_CHANNELS = 4
# Heads of NVLink SHARP up to which the search has time to raise their rate between nodes.
RAISED_HEADS = 16
# Rings that the search puts on each NIC, and the rate of one, by network, where a log says so and the rate of the NIC
# does not: 4 GH200 with 4 NICs on Slingshot have 12 rings, doubled to 24 channels (NCCL 2.26.2, aws-ofi-nccl 1.13.0).
# Their rate is not in the log; from 12 to 22 GB/s NCCL's choices are the same, on two machines those of Alps' tables.
RINGS_PER_NIC = dict.fromkeys(("slingshot", "slingshot-2025"), (3, 20e9))
# Latency between machines that aws-ofi-nccl reports on EFA, s (its src/platform-aws.cpp: P4d, P5 and P5e; P5en,
# P6 and G7e). NCCL adds it to its hops, twice with Simple. Other plugins report none.
REPORTED_LATENCY = {"efa": 75e-6, "efa2": 75e-6, "efa3": 35e-6}


def packed_channels(
    gpu: str, inside: float, outside: float | None = None, n_nics: int = 0, network: str = "", near: int = 0,
    version: tuple[int, ...] = NEWEST,
) -> tuple[int, float]:  # fmt: skip
    """Pack channels into a machine.

    Parameters
    ----------
    gpu : str
        Generation.
    inside : float, bytes/s
        Bandwidth of a GPU's links to the others of its machine; infinite for the only GPU of one.
    outside : float, bytes/s, optional
        Bandwidth of a NIC; with NICs, every channel goes in and out through one.
    n_nics : int
        NICs of a machine.
    network : str
        Network of the machines; of those in ``RINGS_PER_NIC``, NICs have as many channels as stand there.
    near : int
        GPUs of a machine if each has a NIC of its own: rings go in and out by two (crossNic 2). 0: they close inside.
    version : tuple of int
        Release.

    Returns
    -------
    int, float
        How many channels, and the rate of each in bytes/s.

    Raises
    ------
    InputError
        If even the slowest channel does not fit.
    """
    speeds = CHANNEL_GBS[gpu] if outside is None else CHANNEL_NET_GBS[gpu]
    if gpu == "blackwell" and outside is not None and version[:2] < SIXTEEN_SINCE:
        speeds = BEFORE_SIXTEEN_GBS
    best = (0, 0.0)
    for gbs in speeds:
        speed = gbs * 1e9
        if best[0] and speed <= SLOWEST_TRIED * best[1]:
            break
        n = MAX_CHANNELS if inside == float("inf") else int(inside / speed + _FIT)
        n += n // (near - 1) if near > 1 else 0
        if outside is not None:
            n = min(n, n_nics * _rings_of_a_nic(network, speed, outside))
        n = min(n, MAX_CHANNELS)
        if n * speed > best[0] * best[1] * (1 + _FIT):
            best = n, speed
    if not best[0]:
        beside = "" if outside is None else f", and the {n_nics} NICs of a machine have {outside / 1e9:.3g} GB/s each"
        links = f"a GPU's links to the others have {inside / 1e9:.3g} GB/s{beside}"
        raise InputError(f"no channel fits: the slowest that NCCL tries has {speeds[-1]} GB/s, {links}")
    return best


def _rings_of_a_nic(network: str, speed: float, nic: float) -> int:
    if network not in RINGS_PER_NIC:
        return int(nic / speed + _FIT)
    n, most = RINGS_PER_NIC[network]
    return n if speed <= min(nic, most) else 0


def doubled(gpu: str, n: int, rate: float) -> tuple[int, float]:
    """Double the channels where NCCL does: fast ones, and on Hopper and later only very fast or few ones."""
    is_less = gpu in SINCE_HOPPER and rate < DOUBLED_FROM_HOPPER_GBS * 1e9 and n > FEW_CHANNELS
    if rate < DOUBLED_FROM_GBS * 1e9 or is_less:
        return n, rate
    twice = min(2 * n, MAX_CHANNELS)
    return twice, rate / -(-twice // n)


def tree_intra(gpu: str, n: int, rate: float, inside: float, per_node: int) -> float:
    """Return the rate inside a node of each of `n` channels of trees between nodes, or of CollNet's.

    These carry each byte over a NIC half as often as a ring. So the search raises the rate inside, with the one between
    nodes left as it is, through its list until it is twice as much or does not fit. A chain of p GPUs has p - 1 links,
    so that they carry p / (p - 1) as many channels as those of a closed ring; one GPU has none.
    """
    if inside == float("inf"):
        return 2 * rate
    whole, raised = inside * per_node / max(1, per_node - 1), rate
    for gbs in sorted(CHANNEL_NET_GBS[gpu]):
        if raised >= 2 * rate or n * gbs * 1e9 > whole * (1 + _FIT):
            break
        raised = max(raised, gbs * 1e9)
    return raised


def nvls_channels(gpu: str, n_gpus: int, inside: float, n_nics: int = 0) -> tuple[int, float]:
    """One channel for each GPU of the machine that heads one, at the fastest rate at which all fit.

    A channel takes its rate of every GPU's links, and twice of its head's (ncclTopoSearchTryNvls). With NICs (0 for one
    machine) only the nearest GPU of each heads one (ncclTopoSearchRecNet).
    """
    n, speeds = (min(n_gpus, n_nics), CHANNEL_NET_GBS) if n_nics else (n_gpus, CHANNEL_GBS)
    speed = next((gbs * 1e9 for gbs in speeds[gpu] if (n + 1) * gbs * 1e9 <= inside * (1 + _FIT)), 0.0)
    return (n, speed) if speed else (0, 0.0)


def nvls_inter(gpu: str, n: int, rate: float, outside: float, n_nics: int) -> float:
    """Return the rate between nodes of each of `n` channels of NVLink SHARP.

    With the rate inside left as it is, the search raises the one between nodes until it is twice as much or does not
    fit the NICs (second pass of ncclTopoCompute, since 2.19); where the NICs are slower it lowers both. In a rack it
    has used up its time by then: a table of 20 racks of GB200 has the rates of trees, which raised ones would hide.

    Parameters
    ----------
    gpu : str
        Generation.
    n : int
        Number of channels.
    rate : float, bytes/s
        Rate of each inside a node.
    outside : float, bytes/s
        Bandwidth of a NIC.
    n_nics : int
        NICs of a machine.

    Returns
    -------
    float, bytes/s
        The rate; 0 if even the slowest does not fit.
    """
    most = next((gbs * 1e9 for gbs in sorted(CHANNEL_NET_GBS[gpu]) if gbs * 1e9 >= 2 * rate), float("inf"))
    most = most if n <= RAISED_HEADS else rate
    fitting = (gbs * 1e9 for gbs in CHANNEL_NET_GBS[gpu] if n_nics * int(outside / (gbs * 1e9) + _FIT) >= n)
    return next((speed for speed in fitting if speed <= most), 0.0)
