"""``commsim topo``: list, show, check, save, import and export topologies."""

from __future__ import annotations

import importlib.util
import re
import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from commsim.core.errors import InputError
from commsim.core.remark import as_remarks
from commsim.core.units import count_text, format_bandwidth, format_time
from commsim.extensions import house
from commsim.report.answer import Answer, Facts, Lines, Table, comments, remarks

from .flags import TOPOLOGY, Flags, Verb, WithJson, flag, switched
from .flags.faults import Faults, with_faults
from .topo_presets import PresetsConfig, presets

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.routing.cable_counts import CableCount
    from commsim.routing.network_metrics import NetworkMetrics

EXAMPLES = {
    "topo": """
        commsim topo list
        commsim topo presets dgx-h100
        commsim topo show fat_tree:k=4 --draw fat_tree.svg
        commsim topo save star:n_hosts=4 -o network.toml && commsim topo check network.toml
        commsim topo export network.toml -o network.graphml && commsim topo import network.graphml -o back.toml
        commsim topo formats""",
}

# Links whose network takes tens of megabytes.
MANY_LINKS = 2**20
ABOUT_PARAMETERS = (
    "parameters in brackets have defaults; they are given as in fat_tree:k=4,bandwidth=400Gbps",
    "MACHINE@TOPOLOGY puts a machine of `commsim topo presets` in place of hosts; in every topology machines=N is the "
    "number of machines: dgx-h100@star:machines=4",
    "machines of other rates are host types: cpu_host, mesh_host, nvswitch_host and pcie_host; `commsim topo list "
    "pcie_host` has its parameters, such as inter_cpu, the rate between CPU sockets",
)


class TopologyListConfig(WithJson):
    """All flags of ``commsim topo list``."""

    name: str | None = flag("name", nargs="?", metavar="NAME", help="only this topology (default: all)")


class TopologyFlags(Flags):
    """The network that a verb is about."""

    topology: str = flag("topology", metavar=TOPOLOGY, help="network")


class TopologyCheckConfig(WithJson, TopologyFlags):
    """All flags of ``commsim topo check``."""


class TopologyShowConfig(Faults, WithJson, TopologyFlags):
    """All flags of ``commsim topo show``."""

    links: bool = switched(help="list every link with its rate and latency; --csv then has these rows")
    draw: str | None = flag(metavar="FILE", help="draw the network: .svg or .png")
    load: str | None = flag(metavar="FILE", help="with --draw: result whose loads colour the links, as .json or .npz")
    collapse: bool | None = flag(
        help="with --draw: one box for all hosts with the same switches (default: if there are many hosts)"
    )


class TopologySaveConfig(Faults, TopologyFlags):
    """All flags of ``commsim topo save``."""

    output: str = flag("-o", required=True, metavar="FILE", help="file to write: .toml, .json or .npz")


def _effective(topology: str) -> str:
    """Describe that rates of a preset are below those as sold, unless these are asked for."""
    from topologies.presets import has_effective_rates

    text = "; presets have the rates that messages reach (rates=spec: as sold)"
    return text if has_effective_rates(topology) else ""


def list_topologies(config: TopologyListConfig) -> Answer:
    """Return the topologies, or one, and their parameters."""
    from topologies import TOPOLOGIES
    from topologies.hosts import HOST_TYPES

    rows = []
    known = HOST_TYPES if config.name in HOST_TYPES else TOPOLOGIES
    if config.name is not None and config.name not in known:
        from topologies.presets import PRESETS

        if machines := [preset for preset in PRESETS if config.name.lower() in preset]:
            raise InputError(f"no topology, but a preset (commsim topo presets): {', '.join(machines)}")
    for name in known if config.name is None else [config.name]:
        entry = known[name]
        needed = [key for key, parameter in entry.parameters.items() if parameter.default is parameter.empty]
        row = {"topology": name, "parameters": ",".join(entry.parameters), "required": ",".join(needed)}
        rows.append({**row, "summary": entry.summary})
    lines = [line for row in rows for line in (*_parameter_lines(row), f"    {row['summary']}")]
    return Answer([Lines(lines), *remarks(as_remarks(ABOUT_PARAMETERS, "parameters"))], rows, {"what": "topologies"})


def _parameter_lines(row: dict[str, str]) -> list[str]:
    """Return a topology with its parameters, those that are not required in brackets."""
    needed = row["required"].split(",") if row["required"] else []
    words = [key if key in needed else f"[{key}]" for key in row["parameters"].split(",")]
    width = max(40, shutil.get_terminal_size((120, 24)).columns - 1)
    return textwrap.wrap(f"{row['topology']}: {' '.join(words)}", width, subsequent_indent="      ")


def show(config: TopologyShowConfig) -> Answer:
    """Return counts, rates and metrics of a network."""
    if config.draw:
        house().services["check of a picture"](config.draw)
    elif flags := config.given("load", "collapse"):
        raise InputError(f"{flags[0]} changes nothing without --draw FILE")
    from commsim.core.files.result_file import read_result
    from commsim.core.names.nodes_and_links import link_names
    from commsim.core.network_queries import locality_levels
    from commsim.prediction.inputs import load_network
    from commsim.routing.bisection import HALVES, bisection_bandwidth
    from commsim.routing.cable_counts import count_cables

    whole = load_network(config.topology)
    network, notes = with_faults(whole, config)
    notes_shown, drawn = [*network.told, *notes], list[str]()
    if config.draw:
        loads = None if config.load is None else read_result(config.load)
        drawn = house().services["picture of loads"](network, loads, config.draw, config.collapse, whole)
    metrics = _measured(network)
    bisection = bisection_bandwidth(network)
    switches = _switches(network)
    facts = {
        "name": network.name,
        "nodes": ", ".join(_node_count_text(network, kind, n) for kind, n in metrics.counts.items()),
        "switches": ", ".join(_of_switches(*one) for one in switches) or "none",
        "links": f"{network.n_links} directed",
        "routing": network.routing,
        "locality": ", ".join(count_text(level.group.max() + 1, level.name) for level in locality_levels(network)),
        "tiers": ", ".join(f"{n} at {tier}" for tier, n in enumerate(metrics.tier_sizes)),
        "degree": ", ".join(f"{kind} {low}..{high}" for kind, (low, high) in metrics.degrees.items()),
        "diameter": ("" if metrics.is_exact else "at least ") + count_text(metrics.diameter, "link"),
        "oversubscription": ", ".join(
            f"{r:.4g}:1 at tier {t} ({_rising(network, t)})" for t, r in metrics.oversubscription.items()
        ) or "none",
        "bisection": "unknown (pip install 'commsim[opt]')" if bisection is None else
                     f"at most {format_bandwidth(bisection)} one way ({HALVES})",
    }  # fmt: skip
    cables = count_cables(network)
    if cables:
        missing = f"; left out, since they would get no cable: {network.left_out}" if network.left_out else ""
        facts["cables"] = "; ".join(map(_of_cables, cables)) + missing
    if metrics.no_path is not None:
        facts["disconnected"] = f"no path from {metrics.no_path[0]} to {metrics.no_path[1]}"
    latencies = sorted({float(v) for v in network.latency})
    span = " to ".join(format_time(v) for v in dict.fromkeys((latencies[0], latencies[-1]))) if latencies else "none"
    has_machines = bool((network.machine >= 0).any())
    rates = Table(
        ["links", "bandwidth", *(["between"] if has_machines else [])],
        [
            [str(n), format_bandwidth(rate), *([_joined(network, rate)] if has_machines else [])]
            for rate, n in metrics.link_rates.items()
        ],
        f"link rates; latency {span} a link{_effective(config.topology)}",
    )
    row = {
        "topology": network.name,
        "n_links": network.n_links,
        "routing": network.routing,
        "nodes": dict(metrics.counts),
        "switches": [{"switch": name, "n_switches": n, "n_ports": ports} for name, n, ports in switches],
        "tier_sizes": list(metrics.tier_sizes),
        "degrees": {k: list(v) for k, v in metrics.degrees.items()},
        "diameter": metrics.diameter,
        "diameter_is_exact": metrics.is_exact,
        "oversubscription": {str(k): v for k, v in metrics.oversubscription.items()},
        "bisection_Bps": bisection if bisection is None or bisection < float("inf") else None,
        "link_rates": [{"bandwidth_Bps": rate, "n_links": n} for rate, n in metrics.link_rates.items()],
        "no_path": metrics.no_path,
        "cables": [
            {"between": f"{cable.below}:{cable.above}", "per_pair": list(cable.per_pair), "up": list(cable.up),
             "bandwidths_Bps": list(cable.rates)}
            for cable in cables
        ],
        "switches_left_out": network.left_out,
    }  # fmt: skip
    parts = [*comments(drawn), *remarks(notes_shown), Facts(facts), rates]
    if not config.links:
        return Answer(parts, [row], {"topology": config.topology})
    inside = (network.machine[network.src] >= 0) & (network.machine[network.src] == network.machine[network.dst])
    names = link_names(network)
    links = [
        {"link": names[i], "bandwidth_Bps": float(network.bandwidth[i]), "latency_s": float(network.latency[i])}
        for i in np.argsort(inside, kind="stable").tolist()  # those of the fabric first
    ]
    cells = [[link["link"], format_bandwidth(link["bandwidth_Bps"]), format_time(link["latency_s"])] for link in links]
    parts.append(Table(["link", "bandwidth", "latency"], cells, "every link, one way"))
    return Answer(parts, [row], {"topology": config.topology}, {"links": links}, lines=links)


def _switches(network: Network) -> list[tuple[str, int, list[int]]]:
    """Return the switches outside machines by name without number: how many, and the fewest and most ports."""
    from commsim.core.network_queries import fabric_switches

    ports = np.bincount(network.src, minlength=network.n_nodes)
    found: dict[str, list[int]] = {}
    for node in np.flatnonzero(fabric_switches(network)).tolist():
        found.setdefault(re.sub(r"\d+$", "", network.nodes[node]), []).append(int(ports[node]))
    return [(name, len(each), [min(each), max(each)]) for name, each in found.items()]


def _of_switches(name: str, n: int, ports: Sequence[int]) -> str:
    """Write how many switches there are of a name, and their ports."""
    span = f"{ports[0]}" if ports[0] == ports[1] else f"{ports[0]} to {ports[1]}"
    return f"{n} {name} of {span} {'port' if span == '1' else 'ports'}"


def _of_cables(count: CableCount) -> str:
    """Write how many cables join two switches, and how many lead up from one, with their rates."""
    pair, up = (f"{low}" if low == high else f"{low} to {high}" for low, high in (count.per_pair, count.up))
    rates = dict.fromkeys(format_bandwidth(rate) for rate in (count.rates[0], count.rates[-1]))
    each = f"{up} up from each {count.below}, " if count.below != count.above else ""
    return f"{count.below} to {count.above}: {pair} a pair, {each}of {' to '.join(rates)}"


def _rising(network: Network, tier: int) -> str:
    """Name what is in a tier and has links upwards: names without numbers, and whether all are inside machines."""
    from commsim.core.network_queries import tiers

    of_node = tiers(network)
    up = (of_node[network.src] == tier) & (of_node[network.dst] > tier)
    nodes = np.unique(network.src[up & (network.kind[network.src] != network.seat_kind)])
    stems = dict.fromkeys(re.sub(r"\d+$", "", network.nodes[i].rpartition(".")[2]) for i in nodes.tolist())
    inside = " of machines" if (network.machine[nodes] >= 0).all() else ""
    return f"{', '.join(stems)}{inside}"


def _joined(network: Network, rate: float) -> str:
    """Return what links of a rate join, such as ``gpu:switch``; those between CPU sockets with their parameter."""
    import numpy as np

    from commsim.core.network import KINDS

    links = network.bandwidth == rate
    ends = np.sort(network.kind[np.stack((network.src[links], network.dst[links]), 1)], 1)
    pairs = [f"{KINDS[a]}:{KINDS[b]}" for a, b in np.unique(ends, axis=0)]
    return ", ".join("cpu:cpu (inter_cpu)" if pair == "cpu:cpu" else pair for pair in pairs)


def _measured(network: Network) -> NetworkMetrics:
    """Measure a network; of a large one, give back the memory that building and measuring it have freed."""
    from commsim.core.limits import give_back_memory
    from commsim.routing.network_metrics import measure

    metrics = measure(network)
    if network.n_links > MANY_LINKS:
        give_back_memory()
    return metrics


def save_network(config: TopologySaveConfig) -> Answer:
    """Write the network to a file."""
    from commsim.core.files.store import save
    from commsim.prediction.inputs import load_network

    network, notes = with_faults(load_network(config.topology), config)
    save(network, config.output)
    size = f"{count_text(network.n_nodes, 'node')}, {count_text(network.n_links, 'link')}"
    return Answer([*remarks(notes), Lines([f"{config.output}: {size}"])])


def _node_count_text(network: Network, kind: str, n: int) -> str:
    """Return the number of nodes of a kind; switches of the fabric and those inside machines apart, if there are both.

    PCIe switches and NVSwitches are most of the switches of a cluster, and none of them is bought for the fabric.
    """
    from commsim.core.network import SWITCH

    inside = int(np.count_nonzero((network.kind == SWITCH) & (network.machine >= 0))) if kind == "switch" else 0
    if not 0 < inside < n:
        return f"{n} {_kind_of(n, kind)}"
    return f"{n - inside} {_kind_of(n - inside, kind)} of the fabric and {inside} inside machines"


def _kind_of(n: int, kind: str) -> str:
    from commsim.core.network import KINDS, PLURALS

    return kind if n == 1 else PLURALS[KINDS.index(kind)]


def check(config: TopologyCheckConfig) -> Answer:
    """Read the network, refuse it if endpoints are cut off, and return its bounds."""
    from commsim.core.network import PLURALS
    from commsim.prediction.inputs import load_network
    from commsim.routing.bisection import bisection_bandwidth
    from commsim.routing.network_metrics import unusual

    network = load_network(config.topology)
    metrics = _measured(network)
    if metrics.no_path is not None:
        raise InputError(f"{config.topology}: no path from {metrics.no_path[0]} to {metrics.no_path[1]}")
    rates = {"bisection": (bisection_bandwidth(network), "max-flow between halves")}
    if of_collectives := house().services.get("bounds of collectives"):
        rates |= of_collectives(network)
    facts = {
        "name": network.name,
        "ranks": f"{len(network.endpoints)} {PLURALS[network.seat_kind]}",
        "connected": "yes" if metrics.is_exact else "as far as checked",
        **unusual(network),
    }
    missing = "not computed: the linear program is for small networks"
    if importlib.util.find_spec("scipy") is None:
        missing = "unknown (pip install 'commsim[opt]')"
    bounds = Table(
        ["bound", "at most", "why"],
        [[name, missing if rate is None else format_bandwidth(rate), why] for name, (rate, why) in rates.items()],
        "upper bounds on the algorithm bandwidth, for any routing, without reduction in switches",
    )
    row = {name: None if rate is None or rate == float("inf") else rate for name, (rate, _) in rates.items()}
    rows = [{"topology": network.name, "bounds_Bps": row}]
    return Answer([Facts(facts), bounds], rows, {"topology": config.topology})


COMMANDS = {
    "topo list": Verb(TopologyListConfig, list_topologies, "print the topologies, with their parameters"),
    "topo show": Verb(
        TopologyShowConfig, show, "print counts, rates, bisection, diameter, oversubscription; --links lists links"
    ),
    "topo check": Verb(
        TopologyCheckConfig, check, "check a network: print errors with their lines, and bounds on collectives"
    ),
    "topo save": Verb(TopologySaveConfig, save_network, "write a network to a file that can be edited"),
    "topo presets": Verb(
        PresetsConfig, presets, "list commercial machines and networks, or show one: rates and their sources"
    ),
}
