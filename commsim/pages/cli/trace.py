"""``commsim trace``: the timeline of one run for Perfetto and chrome://tracing, or the packets of one flow."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.cli.flags import DefaultOf, Verb, flag
from commsim.cli.flags.faults import FaultsInTime
from commsim.cli.run_flags import AUTO, PlayConfig
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_time, parse_time
from commsim.report.answer import Answer, comments, remarks

if TYPE_CHECKING:
    from commsim.pages.timeline import Timeline
    from commsim.prediction.solve import Solution

EXAMPLES = {
    "trace": """
        commsim trace ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M -o ring.json
        commsim trace ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M -o ring.pftrace
        commsim trace ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M -o ranks.json --tracks ranks
        commsim trace ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M -o part.json --from 20us --to 80us
        commsim trace ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M -o path.json --limit 8 --arrows \
            critical""",
}

JSON_SUFFIXES, NATIVE_SUFFIXES = (".json", ".json.gz"), (".pftrace", ".perfetto-trace", ".pftrace.gz")


class TraceConfig(FaultsInTime, PlayConfig):
    """All flags of ``commsim trace``: those of a simulation, and what the timeline holds."""

    output: str = flag(
        "-o", required=True, metavar="FILE",
        help=".json or .json.gz; .pftrace for Perfetto's own format; .csv for the packets of --flow",
    )  # fmt: skip
    flow: str | None = flag(
        metavar="SRC:DST",
        help="with --engine packet: write what happens to each packet from one rank to another, such as 0:1",
    )
    begin: str | None = flag(
        "--from", metavar="TIME", help="omit messages that end before this time, such as 10us (default: 0s)"
    )
    until: str | None = flag("--to", metavar="TIME", help="omit messages that start after this time (default: the end)")
    limit: int | None = flag(
        metavar="N", help="maximum number of messages: the critical path first, then others at even intervals"
    )
    tracks: str = flag(default="both", choices=("ranks", "links", "both"), help="what has a track")
    arrows: str = flag(
        default=DefaultOf("commsim.pages.timeline:make_timeline.arrows"),
        choices=("all", "critical", "none"),
        help="which messages are drawn as arrows",
    )


def run(config: TraceConfig) -> Answer:
    """Simulate the largest size once, and write its timeline."""
    _check_output(config)
    native = Path(config.output).name.endswith(NATIVE_SUFFIXES)
    if config.engine == AUTO:
        raise InputError("--engine auto chooses by errors in total time, not by timelines; name an engine")
    if len(config.collective) > 1:
        raise InputError(f"a timeline is of one collective, got {len(config.collective)}")
    if config.flow is not None:
        return _packets(config, config.flow, float(config.sizes()[-1]))
    if native:
        from commsim.pages.perfetto_trace import require_perfetto

        require_perfetto()
    timeline, solution = _timeline(config, float(config.sizes()[-1]))
    if native:
        from commsim.pages.perfetto_trace import write_perfetto

        n = write_perfetto(timeline, config.output)
    else:
        from commsim.pages.perfetto_trace import write_chrome

        n = write_chrome(timeline, config.output)
    shown, n_all = len(timeline.transfers), len(timeline.run.n_bytes)
    result = timeline.run.result
    what = (
        f"{timeline.run.name} of {result.size:.0f} bytes on {count_text(result.n_ranks, 'rank')}, "
        f"engine {result.engine}"
    )
    written = f"{config.output}: {shown} of {n_all} messages, {n} events"
    notes = [Remark("timeline", timeline.run.note)] if timeline.run.note else []
    time = f"{what}: {result.time * 1e6:.6g} us"
    return Answer([*comments([time, written]), *remarks((*solution.said, *notes))])


def _timeline(config: TraceConfig, size: float) -> tuple[Timeline, Solution]:
    from commsim.pages.simulated_run import require_timeline, run_of, simulate_run
    from commsim.pages.timeline import TRACKS, make_timeline
    from commsim.prediction.build import plan_collective
    from commsim.prediction.solve import solve
    from commsim.version import __version__

    window = _window(config)
    scenario = config.scenario(config.collective[0] if config.collective else None)
    plan, spec = plan_collective(scenario), scenario.name
    require_timeline(spec, plan, scenario.wish)
    if scenario.wish.engine == "packet":  # whose queues are looked at in a second run, which must take as long
        solution = solve(scenario, [size], plan=plan)
        (result,) = solution.results
        simulated = simulate_run(spec, plan, result.size, scenario.wish.of_draw(result), result.time)
    else:
        traced = dataclasses.replace(scenario, wish=dataclasses.replace(scenario.wish, trace=True))
        solution = solve(traced, [size], plan=plan)
        (result,) = solution.results
        of_draw = traced.wish.of_draw(result)
        simulated = run_of(spec, plan.shown(result.size).hashed_by(of_draw.hash_seed), result, of_draw)
    end = float(simulated.trace.done.max(initial=0.0))
    if window is not None and window[1] is None and window[0] >= end:
        raise InputError(f"--from must be before the end of the run, {format_time(end)}, got {config.begin}")
    timeline = make_timeline(
        simulated,
        window=None if window is None else (window[0], end if window[1] is None else window[1]),
        limit=config.limit,
        show=TRACKS if config.tracks == "both" else (config.tracks,),
        arrows=config.arrows,
        provenance={"commsim": __version__, "collective": spec, "topology": config.topology, "size_B": f"{size:.0f}"},
    )
    return timeline, solution


def _window(config: TraceConfig) -> tuple[float, float | None] | None:
    if config.begin is None and config.until is None:
        return None
    begin = 0.0 if config.begin is None else parse_time(config.begin, "--from")
    return begin, None if config.until is None else parse_time(config.until, "--to")


def _packets(config: TraceConfig, flow: str, size: float) -> Answer:
    """Write what happened to each packet of one flow."""
    from commsim.packets.flow_capture import FlowCapture
    from commsim.prediction.build import plan_collective
    from commsim.prediction.solve import solve

    ranks = re.fullmatch(r"(\d{1,9}):(\d{1,9})", flow, re.ASCII)
    if ranks is None:
        raise InputError(f"--flow takes two ranks, such as 0:1, got {flow!r}")
    if config.engine != "packet":
        raise InputError(f"--flow: only --engine packet has packets, got engine {config.engine or 'flow'}")
    if flags := config.given("begin", "until", "limit", "tracks", "arrows", "start_jitter", "flap"):
        raise InputError(f"{flags[0]} does not go with --flow")
    capture = FlowCapture(int(ranks[1]), int(ranks[2]))
    scenario = config.scenario(config.collective[0] if config.collective else None)
    scenario = dataclasses.replace(scenario, wish=scenario.wish.but(capture=capture))
    solution = solve(scenario, [size], plan=plan_collective(scenario))
    if not capture.is_taken:
        raise InputError(f"{scenario.name}: switches add its packets, which are of no flow: commsim switch simulate")
    n, result = capture.write(config.output), solution.results[0]
    time = f"{scenario.name} of {result.size:.0f} bytes, engine packet: {result.time * 1e6:.6g} us"
    written = f"{config.output}: {n} events of packets from rank {ranks[1]} to {ranks[2]} and of their answers"
    return Answer([*comments([time, written]), *remarks(solution.said)])


def _check_output(config: TraceConfig) -> None:
    path = config.output
    name = Path(path).name
    if (config.flow is None) == name.endswith(".csv"):
        raise InputError(f"{path}: the packets of one flow are a .csv file, --flow SRC:DST -o FILE.csv")
    if config.flow is None and not name.endswith((*JSON_SUFFIXES, *NATIVE_SUFFIXES)):
        raise InputError(f"{path}: a timeline is a file that ends with .json, .json.gz, .pftrace or .perfetto-trace")
    if not Path(path).parent.is_dir():
        raise InputError(f"{path}: cannot write: no such folder")
    if Path(path).is_dir():
        raise InputError(f"{path}: cannot write: Is a directory")


COMMANDS = {"trace": Verb(TraceConfig, run)}
