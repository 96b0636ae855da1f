"""How long a call of NCCL takes: the algorithm and protocol that it takes, its chunks, and what their steps cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from collectives.nccl.call import BY_RANK, MORE_CHANNELS, NcclCall
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_size, microseconds

from .call_times import CallLinks, ring_time, tree_time
from .choice import NO_LL128_ON_BLACKWELL, chosen_cell
from .expected_costs import NVLS_EFFICIENCY
from .gpu_costs import GpuCosts, Primitives, costs
from .in_switch import ExchangeTime, direct_time, exchange_of, nvls_time, pat_time, send_of
from .intervals import interval_of, kind_of
from .machine_links import has_islands
from .model_versions import FIRST_RELEASE, MODELS
from .site import Site
from .tuning_table import Cell, cells, nvls_heads

EXCHANGES = ("all_to_all", "send_recv")
# Networks over which threads of the CPU copy, as many as NCCL is told.
SOCKETS = ("ena", "sockets")
# What is said of operation, size, the fastest choice, its upper bound, and NCCL's choice: 100 characters at most.
FASTER = "{}, {}: {} takes at most {} us, NCCL's {} {} us"


@dataclass(frozen=True, slots=True)
class CallTime:
    """Time of one call.

    Parameters
    ----------
    seconds : float
        Time of the call.
    how : str
        Algorithm and protocol, such as ``ring/ll128``.
    low, high : float, s
        Bounds between which 80 % of the tables of such machines and sizes lie that nothing was fitted on; both are
        `seconds` where none exists.
    """

    seconds: float
    how: str
    low: float
    high: float


def predict(
    site: Site, operation: str, size: int, algorithm: str = "", protocol: str = "", known: GpuCosts | None = None
) -> CallTime:
    """Predict the time of a single call, as nccl-tests measures it.

    Parameters
    ----------
    site, operation, size, algorithm, protocol
        Same as in :func:`commsim.nccl.choice.chosen_cell`; ``all_to_all`` and ``send_recv`` have no algorithm.
    known : GpuCosts, optional
        Constants (default: those of this version).

    Raises
    ------
    InputError
        If constants of the GPU or the network are not known, or what is forced does not exist.
    """
    known = known or costs()
    ways = ways_of(site, known)
    if operation in EXCHANGES:
        seconds, how = exchange_at(site, ways, operation, size).seconds, "p2p"
    else:
        cell = chosen_cell(site, operation, size, algorithm, protocol, known)
        seconds, how = cell_seconds(site, ways, operation, cell, size), cell.name
    low, high = spread_of(site, size, how.partition("/")[0])
    return CallTime(seconds, how, seconds * low, seconds * high)


def faster_than_chosen(
    site: Site, operation: str, sizes: Iterable[float], algorithm: str = "", protocol: str = ""
) -> list[Remark]:
    """Say once where what NCCL chooses is predicted to be slower than another choice by more than the error.

    Parameters
    ----------
    site, operation, algorithm, protocol
        Same as in :func:`commsim.nccl.choice.chosen_cell`.
    sizes : iterable of float, bytes
        Sizes that are asked for.

    Returns
    -------
    list of Remark
        One about the size at which the choice costs most, and how many others there are; nothing where every choice
        lies within the interval of the fastest, or where no interval is known.
    """
    if operation in EXCHANGES:
        return []
    usable = [cell for cell in cells(site.setting, operation) if cell.bandwidth]
    worst, others = (1.0, ""), -1
    for size in map(int, sizes):
        every = (predict(site, operation, size, cell.algorithm, cell.protocol) for cell in usable)
        choice = predict(site, operation, size, algorithm, protocol)
        sure = [one for one in every if one.seconds < one.high < choice.seconds]
        if not sure:
            continue
        best = min(sure, key=lambda one: one.seconds)
        others += 1
        line = FASTER.format(operation, format_size(size), best.how, microseconds(best.high, 1), choice.how,
                             microseconds(choice.seconds, 1))  # fmt: skip
        worst = max(worst, (choice.seconds / best.seconds, line))
    if others < 0:
        return []
    also = f"also at {count_text(others, 'other size')}" if others else ""
    return [Remark("other-faster", worst[1], worst[0] - 1, details=also)]


def over_releases(
    site: Site, operation: str, size: int, algorithm: str = "", protocol: str = "", known: GpuCosts | None = None
) -> tuple[float, float]:
    """Return the interval of the time where the release is not known: of all releases that a generation runs with.

    Parameters
    ----------
    site, operation, size, algorithm, protocol, known
        Same as in :func:`predict`; the release of `site` does not matter.

    Returns
    -------
    float, float, s
        The least lower and the greatest upper bound.

    Raises
    ------
    InputError
        As :func:`predict`, if no release has what is forced.
    """
    times, last = [], InputError("no release")
    for release in sorted({model.since for model in MODELS} | {MORE_CHANNELS, *NO_LL128_ON_BLACKWELL}):
        if release[:2] < FIRST_RELEASE[site.setting.gpu]:
            continue
        here = replace(site, version=release, setting=replace(site.setting, version=(release[0], release[1])))
        try:
            times.append(predict(here, operation, size, algorithm, protocol, known))
        except InputError as error:
            last = error
    if not times:
        raise last
    return min(time.low for time in times), max(time.high for time in times)


def spread_of(site: Site, size: float, algorithm: str = "") -> tuple[float, float]:
    """Return between which parts of a predicted time about 80 % of unseen rows lie; (1, 1) where that is not known."""
    kind = kind_of(site.setting.n_ranks, site.setting.n_nodes, site.network, algorithm)
    return (1.0, 1.0) if has_islands(site.setting) else interval_of(kind, size)


def ways_of(site: Site, known: GpuCosts) -> CallLinks:
    """Return links and costs of a place."""
    gpu = site.setting.gpu
    primitives: Primitives = known.of_gpu(gpu)
    share, ll_share = known.pcie.get(gpu, (1.0, 1.0)) if site.pcie else (1.0, 1.0)
    among = known.pcie_exchange.get(gpu, 1.0)
    link = site.link * share
    if site.setting.n_nodes == 1 and site.p2p:
        return CallLinks(link, primitives, ll_link=ll_share, exchange=among)
    per_node = site.setting.n_ranks // site.setting.n_nodes
    plugin = known.of_network(site.network)
    if site.setting.socket_threads and site.network in SOCKETS:
        plugin = replace(plugin, copy=plugin.copy * site.setting.socket_threads / plugin.threads)
    return CallLinks(link, primitives, plugin, site.nics, ll_share, max(1, site.n_nics), per_node, among, site.host)


def on_rails(site: Site, ways: CallLinks, algorithm: str) -> CallLinks:
    """Return the links of a place with the NICs that an algorithm's channels leave by.

    Rings and trees have as many rails as the search found channels; those that are doubled later, or that a call has
    more of, leave by the same NICs. A rack of 72 GPUs has 16 channels of 45 GB/s, and so 16 of its 72 NICs in use.
    """
    rails = site.setting.channels["ring"].n
    if ways.plugin is None or algorithm not in ("ring", "tree", "collnet_chain") or rails >= ways.n_nics:
        return ways
    return replace(ways, nics=ways.nics * rails / ways.n_nics, n_nics=rails, host=ways.host * rails / ways.n_nics)


def cell_seconds(
    site: Site, ways: CallLinks, operation: str, cell: Cell, size: int, call: NcclCall | None = None
) -> float:  # fmt: skip
    """Return the time of a call with one algorithm and protocol."""
    call, ways = call or call_of(site, operation, cell, size), on_rails(site, ways, cell.algorithm)
    if cell.algorithm == "ring":
        return ring_time(ways, call)
    if cell.algorithm in ("tree", "collnet_chain"):
        return tree_time(ways, call)
    if cell.algorithm == "pat":
        return pat_time(ways, call)
    if cell.algorithm == "collnet_direct":
        return direct_time(ways, call)
    return nvls_time(ways, call, switch_rate(site))


def switch_rate(site: Site) -> float:
    """Return the rate of a GPU's NVLinks for what their switch adds or multicasts: NCCL's share of the links."""
    return site.link * (NVLS_EFFICIENCY[site.setting.gpu] or 1.0)


def call_of(site: Site, operation: str, cell: Cell, size: int, n_channels: int = 0) -> NcclCall:
    """Return the call that NCCL's rules cut, with the channels of the place unless a number is given."""
    where, heads, usual, largest = site.setting, 0, site.max_channels, 0
    if cell.algorithm.startswith("nvls"):
        heads = nvls_heads(where)
        usual, largest = where.nvls_call(cell.algorithm)
    if cell.algorithm == "collnet_direct":
        heads = direct_heads(site, operation)
    n_channels = n_channels or usual
    release = site.version[0], site.version[1]
    return NcclCall(
        operation, size, where.n_ranks, where.n_nodes, cell.algorithm, cell.protocol, n_channels, release,
        slow=where.has_slow_rings, heads=heads, buffer=where.buffer, nvls_chunk=largest,
    )  # fmt: skip


def direct_heads(site: Site, operation: str) -> int:
    """Return the GPUs of a machine that head a part with CollNet direct: the nearest one of each NIC.

    In an all-gather or a reduce-scatter each rank heads its own part.
    """
    per_node = site.setting.n_ranks // site.setting.n_nodes
    return per_node if operation in BY_RANK else min(per_node, site.n_nics)


def exchange_at(site: Site, ways: CallLinks, operation: str, size: int) -> ExchangeTime:
    """Return the time of an exchange of messages at a place."""
    n, version, usual = site.setting.n_ranks, site.version, site.max_channels
    chunks = {"buffer": site.setting.buffer, "net_chunk": site.setting.net_chunk}
    bare = ways.link * ways.exchange if site.pcie else site.link
    if operation == "send_recv":  # each rank sends all of it to the next one; one rank of a machine out of it
        k = min(ways.n_nics, ways.per_node)  # NICs in use
        alone = replace(ways, nics=ways.nics / k, n_nics=1, host=ways.host / k)
        if site.one_way and ways.plugin is None:
            return send_of(alone, size, bare)
        return exchange_of(alone, size, 2, 1, usual, bare, works=1, version=version, **chunks)
    together = n // site.setting.n_nodes
    per_node, each = together if site.p2p else 1, -(-size // n)
    return exchange_of(ways, each, n, per_node, usual, bare, together, version=version, **chunks)
