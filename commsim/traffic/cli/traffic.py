"""``commsim traffic``: patterns of messages between hosts, such as a permutation or an incast."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from commsim.cli.flags import OVERHEAD, TOPOLOGY, DefaultOf, Flags, Verb, WithJson, flag
from commsim.cli.flags.faults import Faults, FaultsInTime, Hashes
from commsim.cli.run import resolved_network
from commsim.cli.run_flags import read_flags
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.units import parse_nccl_size, parse_time
from commsim.packets.cli.packet_flags import PACKET_FLAGS, Packets, packet_values
from commsim.report.answer import Answer, comments, remarks
from commsim.traffic.traffic_table import more_of_traffic, parts_of_traffic, rows_of_traffic, title_of_traffic

if TYPE_CHECKING:
    from commsim.packets.transports.spraying import Spraying
    from commsim.pages.study import Study
    from commsim.prediction.scenario import Scenario
    from commsim.prediction.solve import Solution

EXAMPLES = {
    "traffic": """
        commsim traffic --topology leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4 --size 64KiB
        commsim traffic --topology leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4 --size 64KiB --pattern \
            incast --peers 4
        commsim traffic --topology leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4 --size 64KiB --balancing ecmp
        commsim traffic --topology fat_tree:k=4 --size 64KiB --seed 3
        commsim traffic --topology leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4 --size 64KiB --report \
            traffic.html""",
}

LOOKS = 200
# Time between two samples of a timeline.
SAMPLE = "1us"
# Relative difference of times up to which a run is the same: a look at the queues may swap packets of one instant.
ALIKE = 0.01
# Hosts spray packets unless something else is said; what else a transport means is the same in all verbs.
USUAL = {"transport": "nscc"}
# Flags that have the name of what they give to a scenario.
SAME = ("engine", "overhead", "routing", "seed", "hashes", "fail", "scale", "flap", "detection", "rto", "payload",
        "header")  # fmt: skip
# Flags of some patterns, and the parameter that each is of one.
OF_PATTERNS: Mapping[str, Mapping[str, str]] = {
    "peers": {"incast": "senders", "outcast": "receivers"}, "spread": {"incast": "spread"},
}  # fmt: skip


class TrafficFlags(Flags):
    """What is sent, and over what."""

    TITLE: ClassVar[str] = "network and messages"
    topology: str = flag(required=True, metavar=TOPOLOGY, help="network of hosts and switches")
    pattern: str = flag(
        default="permutation", metavar="NAME[:key=value,...]|FILE.csv",
        help="permutation, incast, outcast, all_to_all or random; or a CSV of messages: src, dst, size_B[, start_s]",
    )  # fmt: skip
    size: str = flag("-b", default="1MB", metavar="SIZE", help="bytes of each message")
    peers: int | None = flag(
        metavar="N",
        help="senders of an incast (default: %(usual)s), receivers of an outcast (default: %(other)s)",
        shown={
            "usual": DefaultOf("commsim.traffic.patterns:incast.senders"),
            "other": DefaultOf("commsim.traffic.patterns:outcast.receivers"),
        },
    )
    spread: str | None = flag(metavar="TIME", help="senders of an incast begin within this time (default: 0s)")
    routing: str | None = flag(metavar="NAME", help="routing of messages that keep to a path (default: the network's)")


class TrafficOutputs(WithJson):
    """Where the answer goes."""

    TITLE: ClassVar[str] = "output"
    timeline: str | None = flag(metavar="FILE", help="write queues, rates and messages over time, for ui.perfetto.dev")
    report: str | None = flag(metavar="FILE.html", help="write a page: completion times, queues and paths over time")
    sample: str | None = flag(
        metavar="TIME",
        help=f"time between two samples of the queues (default: {SAMPLE} for --timeline, 1/{LOOKS} of the lower bound "
        "on the time for --report)",
    )


class TrafficConfig(TrafficOutputs, Packets, FaultsInTime, Hashes, Faults, TrafficFlags):
    """All flags of ``commsim traffic``."""

    TITLE: ClassVar[str] = "engine and packets"
    RARE: ClassVar[Mapping[str, str | None]] = dict.fromkeys(
        {*PACKET_FLAGS} - {"shared_buffer", "buffer_alpha", "class_weights", "loss_burst", "ack_every"}
    )
    MEANT: ClassVar[Mapping[str, str]] = {"": "; a pattern is given as --pattern {}"}
    overhead: str | None = flag(
        metavar="TIME",
        help="time per message at the sender, o of LogP (default: %(usual)s, or 0us for GPUs of machines)",
        shown={"usual": OVERHEAD},
    )
    engine: str = flag(default="packet", metavar="NAME", help="packet, or flow")

    def scenario(self) -> Scenario:
        """Return the scenario: hosts spray packets where nothing else is said."""
        from commsim.prediction.read import scenario_of

        packets = self._usual() | (packet_values(self) if self.given(*PACKET_FLAGS) else {})
        options = {name: getattr(self, name) for name in SAME}
        return scenario_of(None, self.topology, traffic=self._pattern(), packets=packets, **options)

    def _usual(self) -> dict[str, Any]:
        """Return how packets are sent where nothing is said."""
        return {} if self.engine != "packet" or self.preset is not None else USUAL

    def resolved(self, transport: Spraying | None, *without: str) -> dict[str, Any]:
        """Return flags and values as the JSON has them, with what was chosen where nothing was said."""
        flags = self.flags(*without)
        chosen = {} if transport is None else {name: getattr(transport, name) for name in ("transport", "balancing")}
        return flags | {name: value for name, value in chosen.items() if flags[name] is None}

    def _pattern(self) -> str:
        """Return the pattern with the parameters that have flags of their own."""
        name, _, more = self.pattern.partition(":")
        parts = [more] if more else []
        for given, of in OF_PATTERNS.items():
            value = getattr(self, given)
            if value is not None and name not in of:
                raise InputError(f"--{given} changes nothing in a pattern like {name}")
            parts += [] if value is None else [f"{of[name]}={value}"]
        return f"{name}:{','.join(parts)}" if parts else self.pattern


def run(config: TrafficConfig) -> Answer:
    """Simulate, and compare with the bound and with each message by itself."""
    from commsim.traffic.patterns import is_file

    size = parse_nccl_size(config.size, "--size")
    if size < 1 or size != int(size):
        raise InputError(f"--size is a whole number of bytes, at least 1, got {config.size}")
    of_file = is_file(config.pattern)
    if of_file and config.given("size"):
        raise InputError(f"--size changes nothing in messages of a file, got {config.pattern}")
    solution = _simulate(config, size, _looks(config))
    scenario, plan = solution.scenario, solution.plan
    carried, network, transport = solution.details, plan.network, scenario.wish.model.transport
    title = title_of_traffic(solution, config.pattern if of_file else f"{config.pattern} of {config.size}")
    parts = parts_of_traffic(solution, title)
    if config.preset is not None:
        from commsim.packets.packet_presets import preset_sources

        text = f"preset {config.preset}: {preset_sources(config.preset)}"
        parts += remarks([Remark("source", text)])
    said = Answer(parts).remarks
    if config.timeline is not None:
        from commsim.traffic.queue_trace import write_queues

        write_queues(config.timeline, network, carried.messages, carried.run)
    if config.report is not None:
        from commsim.pages.page.write import write_report
        from commsim.pages.study import made_by
        from commsim.prediction.faults import failed_links
        from commsim.prediction.inputs import load_network
        from commsim.traffic.traffic_report import study_of_traffic
        from commsim.version import __version__

        failed = failed_links(load_network(config.topology), network) if config.fail else []
        of = made_by("traffic", {"version": __version__, **config.resolved(transport, "report", "timeline")})
        study = study_of_traffic(title, network, carried.run, carried.slowdown, of, (*said, *failed))
        parts += comments(write_report(study, config.report))
    more = more_of_traffic(solution) | {"network": resolved_network(network)}
    return Answer(parts, rows_of_traffic(solution), config.resolved(transport), more)


def _simulate(config: TrafficConfig, size: float, looks: float | None) -> Solution:
    """Simulate, with as many seconds between two looks at the queues as :func:`_looks` says."""
    from commsim.prediction.solve import plan_of, solve
    from commsim.traffic.host_traffic import TrafficPlan

    scenario = config.scenario()
    plan = plan_of(scenario)
    if looks is not None and scenario.wish.model.transport is not None and isinstance(plan, TrafficPlan):
        # a run takes at least the bound, so that a page has 200 looks or more; the kernel counts whole picoseconds
        every = looks or max(plan.bound(size, scenario.wish) / LOOKS, 1e-9)
        sampled = dataclasses.replace(scenario.wish.model.transport, sample=every)
        scenario = dataclasses.replace(scenario, wish=scenario.wish.but(transport=sampled))
    return solve(scenario, [size], plan=plan)


def traffic_again(study: Study, flags: Mapping[str, Any], source: str) -> Study:
    """Simulate the messages of a file of ``commsim traffic --json`` again, for figures of their queues.

    Parameters
    ----------
    study : Study
        Study of the file's messages.
    flags : mapping
        Configuration in the file, whose texts execute no code.
    source : str
        The file, for messages.

    Raises
    ------
    InputError
        If a flag is wrong, or the times are others than those of the file.
    """
    from commsim.traffic.traffic_report import study_of_traffic

    config = read_flags(TrafficConfig, {**flags, "timeline": None, "report": None, "json": None}, source, "traffic")
    if config.engine != "packet":
        return study  # which has no queues
    every = 0.0 if config.sample is None else parse_time(config.sample, "--sample")
    solution = _simulate(config, parse_nccl_size(config.size, "--size"), every)
    run, slowdown = solution.details.run, solution.details.slowdown
    again = study_of_traffic(study.title, solution.plan.network, run, slowdown, study.provenance, study.remarks)
    if any(not np.allclose(again.rows[name].values, study.rows[name].values, ALIKE, 0) for name in study.rows):
        raise InputError(f"{source}: simulated again it has other times: another version or other files made it")
    return again


def _looks(config: TrafficConfig) -> float | None:
    """Return the seconds between two looks at the queues, 0 for a part of the bound; None for no looks.

    Raises
    ------
    InputError
        If a file cannot be written, or the flags contradict each other.
    """
    if config.timeline is None and config.report is None:
        if config.sample is not None:
            raise InputError("--sample changes nothing without --timeline or --report")
        return None
    if config.engine != "packet":
        raise InputError(f"--timeline and --report show queues of packets, got engine {config.engine or 'flow'}")
    if config.report is not None:
        from commsim.pages.page.write import check_page

        check_page(config.report)
    if config.sample is None:
        return parse_time(SAMPLE, "--sample") if config.timeline is not None else 0.0
    if (every := parse_time(config.sample, "--sample")) == 0:
        raise InputError("--sample is longer than 0s")
    return every


COMMANDS = {"traffic": Verb(TrafficConfig, run)}
