"""``commsim traffic``: patterns of messages over a fabric whose hosts spray packets, packet by packet."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.units import format_size, microseconds, parse_size, parse_time, share
from commsim.report.answer import Answer, Part, Remarks, Table, remarks
from commsim.scenario.faults import DETECTION

from .flags import Verb, WithJson, flag, repeated, switched
from .flags.costs import TOPOLOGY
from .report import write_report

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.routing.flaps import Flaps

COLUMNS = ["messages", "first(us)", "mean(us)", "p99(us)", "last(us)", "bound(us)", "sent_again", "trimmed", "marked"]
LEAST = ["first(us)", "marked", "sent_again", "trimmed"]
LOOKS = 200


class Config(WithJson):
    """All flags of ``commsim traffic``."""

    topology: str = flag(required=True, metavar=TOPOLOGY, help="network of hosts and switches")
    pattern: str = flag(default="permutation", metavar="NAME", help="permutation, incast, outcast or all_to_all")
    size: str = flag(default="1MB", metavar="SIZE", help="bytes of each message")
    peers: int | None = flag(metavar="N", help="senders of an incast, receivers of an outcast (default: 8)")
    spread: str | None = flag(metavar="TIME", help="senders of an incast begin within this time (default: 0s)")
    preset: str | None = flag(
        metavar="NAME",
        help="transport, balancing and what full queues do: uec, uec-credit, roce, roce-adaptive, swift, ideal",
    )
    transport: str = flag(
        default="nscc",
        metavar="NAME",
        help="nscc, rccc, eqds, ndp, dctcp, swift, hpcc, timely, patched_timely, dcqcn, window; NAME:key=value",
    )
    balancing: str = flag(
        default="mixed",
        metavar="NAME",
        help="ecmp, spray (oblivious), bitmap, reps, mixed; adaptive, flowlet: the switch chooses",
    )
    entropies: int = flag(default=128, metavar="E", help="paths that a message tries, a power of two")
    flowlet_gap: str | None = flag(metavar="TIME", help="pause that ends a flowlet (default: a round trip)")
    queue: str | None = flag(metavar="SIZE", help="data that a switch port holds (default: rate times round trip)")
    ecn: str | None = flag(
        metavar="MIN:MAX[:P]",
        help="queued bytes from which packets may be marked (MIN) and always are (MAX); P: probability below MAX",
    )
    window: str | None = flag(
        metavar="SIZE", help="initial window of a message (default: 1.5 times rate times round trip)"
    )
    no_trimming: bool = switched(help="full queues drop packets instead of trimming them")
    timeline: str | None = flag(metavar="FILE", help="write queues, rates and messages over time, for ui.perfetto.dev")
    report: str | None = flag(metavar="FILE.html", help="write a page: completion times, queues and paths over time")
    sample: str | None = flag(
        metavar="TIME",
        help="time between two samples of the queues (default: 1us for --timeline, a 200th of the bound for --report)",
    )
    flap: tuple[str, ...] = repeated(
        metavar="WHAT@START+LENGTH",
        help="cables between switches that go down during the run, such as link:leaf0:spine0@10us+50us; repeatable",
    )
    detection: str | None = flag(
        metavar="TIME", help="time until switches route around a cable that is down (default: 1ms)"
    )
    seed: int = flag(default=1, metavar="N", help="seed of the pattern, of hashes, marks and entropies")


def run(config: Config) -> Answer:
    """Simulate, and compare with the bound and with each message by itself."""
    from commsim.engine.packet.links.ways import ways_of
    from commsim.engine.packet.packet_run import simulate
    from commsim.engine.packet.transports.spraying import Spraying
    from commsim.engine.traffic.slowdown import busiest_host, cost_of_flaps, cumulative, slowdowns
    from commsim.scenario.inputs import load_network
    from commsim.scenario.packet_options import BALANCING_NAMES, told_transport
    from commsim.scenario.packet_presets import DEEP

    network = load_network(config.topology)
    size = parse_size(config.size, "--size")
    if size < 1 or size != int(size):
        raise InputError(f"--size is a whole number of bytes, at least 1, got {config.size}")
    if config.flowlet_gap is not None and config.balancing != "flowlet":
        raise InputError("--flowlet-gap changes nothing without --balancing flowlet")
    if config.sample is not None and config.timeline is None and config.report is None:
        raise InputError("--sample changes nothing without --timeline or --report")
    if config.sample is not None and parse_time(config.sample, "--sample") == 0:
        raise InputError("--sample is longer than 0s")
    if config.report is not None:
        from commsim.report.page.write import check_page

        check_page(config.report)
    flaps = _flaps(config, network)
    messages = _messages(config, len(ways_of(network).hosts), int(size))
    spraying = Spraying(
        config.transport, BALANCING_NAMES.get(config.balancing, config.balancing), config.entropies,
        queue=_bytes(config.queue, "--queue"),
        ecn=_marks(config.ecn), window=_bytes(config.window, "--window"), trims=not config.no_trimming,
        flowlet_gap=parse_time(config.flowlet_gap or "0s", "--flowlet-gap"), seed=config.seed,
    )  # fmt: skip
    if config.preset is not None:
        spraying = dataclasses.replace(spraying, **_chosen(config))
    bound = busiest_host(network, messages, spraying)
    found = simulate(network, messages, dataclasses.replace(spraying, sample=_sample(config, bound)), flaps)
    lost = {} if flaps is None else cost_of_flaps(network, messages, spraying, found)
    times = np.sort(found.finished)
    shown = [times[0], times.mean(), np.quantile(times, 0.99), times[-1], bound]
    counters = found.counters
    cells = [f"{len(times)}", *(microseconds(t) for t in shown)]
    cells += [f"{counters[name]}" for name in ("n_resent", "n_trimmed", "n_marked")]
    title = f"{config.pattern} of {config.size} on {network.name}, {told_transport(spraying)}"
    slower = slowdowns(network, messages, spraying, found)
    points = cumulative(slower)
    rules = found.rules
    # a sender with a rate has no window
    window = f"window {format_size(rules['window'])}" if rules["window"] < 1e12 else "no window"
    queue = f"queue {format_size(rules['queue'])}" if rules["queue"] < DEEP else "queues without limit"
    said = [
        f"slowdown against a message by itself: median {points['0.5']:.3f}, 99 % {points['0.99']:.3f}, "
        f"most {points['1']:.3f}",
        f"{window}, {queue}, marks from {format_size(rules['ecn_min'])} to "
        f"{format_size(rules['ecn_max'])}, round trip {microseconds(rules['rtt'])} us",
        "bound: bytes of the busiest host, with headers, over its rate; completion is the last acknowledgement at the "
        "sender",
    ]
    if config.preset is not None:
        from commsim.scenario.packet_presets import preset_sources

        said.append(f"preset {config.preset}: {preset_sources(config.preset)}")
    if lost:
        said.append(
            f"the flap costs {microseconds(lost['last_s'])} us of the last message, "
            f"{microseconds(lost['mean_s'])} us in the mean; packets that were lost: "
            f"{counters['n_dropped']}, timeouts: {counters['n_timeouts']}"
        )
    parts: list[Part] = [Table(COLUMNS, [cells], title, LEAST), Remarks(said)]
    rows: list[dict[str, Any]] = [
        {"src": int(messages.src[i]), "dst": int(messages.dst[i]), "size_B": int(messages.nbytes[i]),
         "start_s": float(messages.start[i]), "received_s": float(found.received[i]),
         "finished_s": float(found.finished[i]), "slowdown": float(slower[i])}
        for i in range(len(messages.src))
    ]  # fmt: skip
    if config.timeline is not None:
        from commsim.engine.traffic.queue_trace import write_queues

        write_queues(config.timeline, network, messages, found)
    if config.report is not None:
        from commsim import __version__
        from commsim.report.fabric.traffic_report import study_of_traffic
        from commsim.report.study import made_by

        of = made_by("traffic", {"version": __version__, **config.flags("report", "timeline")})
        parts += remarks(write_report(study_of_traffic(title, network, found, slower, of, said), config.report))
    more: dict[str, object] = {"flap_lost": lost} if lost else {}
    more = {"bound_s": bound, "counters": counters, "rules": rules, "slowdown_cdf": points, **more}
    return Answer(parts, rows, more=more)


def _chosen(config: Config) -> dict[str, Any]:
    """Return what the preset chooses and no flag says."""
    from commsim.scenario.packet_presets import sprayed_preset

    fields = {"buffer": ("queue", "queue"), "trimming": ("trims", "no_trimming")}
    chosen = {fields.get(key, (key, key)): value for key, value in sprayed_preset(config.preset or "").items()}
    return {field: value for (field, name), value in chosen.items() if not config.given(name)}


def _flaps(config: Config, network: Network) -> Flaps | None:
    """Read ``--flap`` and ``--detection``."""
    from commsim.routing.flaps import read_flaps

    if config.detection is not None and not config.flap:
        raise InputError("--detection goes with --flap")
    return read_flaps(config.flap, network, detection=parse_time(config.detection or DETECTION, "--detection"))


def _sample(config: Config, bound: float) -> float:
    """Seconds between two looks at the queues, 0 for none."""
    if config.sample is not None:
        return parse_time(config.sample, "--sample")
    if config.timeline is not None:
        return parse_time("1us", "--sample")
    # a run takes at least the bound, so that a page has 200 looks or more; the kernel counts whole picoseconds
    return max(bound / LOOKS, 1e-9) if config.report is not None else 0.0


def _messages(config: Config, n_hosts: int, size: int) -> Any:
    from commsim.engine.traffic.patterns import PATTERNS

    if config.pattern not in PATTERNS:
        raise InputError(f"unknown pattern {config.pattern!r}; known: {', '.join(PATTERNS)}")
    options: dict[str, Any] = {} if config.pattern == "all_to_all" else {"seed": config.seed}
    peers = {"incast": "senders", "outcast": "receivers"}.get(config.pattern)
    if peers is not None:
        options[peers] = 8 if config.peers is None else config.peers
    elif config.peers is not None:
        raise InputError(f"--peers changes nothing in a pattern like {config.pattern}")
    if config.spread is not None:
        if config.pattern != "incast":
            raise InputError(f"--spread changes nothing in a pattern like {config.pattern}")
        options["spread"] = parse_time(config.spread, "--spread")
    return PATTERNS[config.pattern](n_hosts, size, **options)


def _bytes(text: str | None, name: str) -> float | None:
    return None if text is None else parse_size(text, name)


def _marks(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    parts = text.split(":")
    if len(parts) not in (2, 3):
        raise InputError(f"--ecn is MIN:MAX or MIN:MAX:P, such as 100KB:300KB, got {text!r}")
    try:
        chance = () if len(parts) == 2 else (share(parts[2]),)
    except ValueError:
        raise InputError(f"--ecn ends with a chance such as 0.01 or 1%, got {parts[2]!r}") from None
    return (parse_size(parts[0], "--ecn"), parse_size(parts[1], "--ecn"), *chance)


COMMANDS = {"traffic": Verb(Config, run)}
