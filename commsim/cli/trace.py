"""``commsim trace``: the timeline of one run for Perfetto and chrome://tracing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.core.units import counted, format_time, parse_time
from commsim.report.answer import Answer, remarks

from .flags import Verb, flag
from .flags.faults import FaultsInTime
from .run.config import AUTO, PlayConfig

if TYPE_CHECKING:
    from commsim.report.timeline import Timeline
    from commsim.scenario.solve import Solution

JSON_SUFFIXES, NATIVE_SUFFIXES = (".json", ".json.gz"), (".pftrace", ".perfetto-trace", ".pftrace.gz")


class Config(FaultsInTime, PlayConfig):
    """All flags of ``commsim trace``: those of a simulation, and what the timeline holds."""

    output: str = flag(
        "-o", required=True, metavar="FILE", help=".json or .json.gz; .pftrace for Perfetto's own format"
    )
    begin: str | None = flag(
        "--from", metavar="TIME", help="omit messages that end before this time, such as 10us (default: 0s)"
    )
    until: str | None = flag("--to", metavar="TIME", help="omit messages that start after this time (default: the end)")
    limit: int | None = flag(
        metavar="N", help="maximum number of messages: the critical path first, then others at even intervals"
    )
    tracks: str = flag(default="both", choices=("ranks", "links", "both"), help="contents of the tracks")
    arrows: str = flag(default="all", choices=("all", "critical", "none"), help="messages with an arrow")


def run(config: Config) -> Answer:
    """Simulate the largest size once, and write its timeline."""
    native = _is_native(config.output)
    if config.engine == AUTO:
        raise InputError("--engine auto chooses by errors in total time, not by timelines; name an engine")
    if len(config.collective) > 1:
        raise InputError(f"a timeline is of one collective, got {len(config.collective)}")
    if native:
        from commsim.report.timeline_files import require_perfetto

        require_perfetto()
    timeline, solution = _timeline(config, float(config.sizes()[-1]))
    if native:
        from commsim.report.timeline_files import write_perfetto

        n = write_perfetto(timeline, config.output)
    else:
        from commsim.report.timeline_files import write_chrome

        n = write_chrome(timeline, config.output)
    shown, n_all = len(timeline.transfers), len(timeline.run.n_bytes)
    result = timeline.run.result
    what = (
        f"{timeline.run.name} of {result.size:.0f} bytes on {counted(result.n_ranks, 'rank')}, engine {result.engine}"
    )
    written = f"{config.output}: {shown} of {n_all} messages, {n} events"
    said = [timeline.run.note] if timeline.run.note else []
    time = f"{what}: {result.time * 1e6:.6g} us"
    return Answer(remarks((*solution.derived, time, *solution.remarks, *said, written)))


def _timeline(config: Config, size: float) -> tuple[Timeline, Solution]:
    from commsim import __version__
    from commsim.report.simulated_run import require_timeline, run_of
    from commsim.report.timeline import TRACKS, make_timeline
    from commsim.scenario.build import plan_collective
    from commsim.scenario.solve import solve

    window = _window(config)
    scenario = config.scenario(config.collective[0] if config.collective else None)
    plan, spec = plan_collective(scenario), scenario.name
    require_timeline(spec, plan, scenario.wish)
    traced = dataclasses.replace(scenario, wish=dataclasses.replace(scenario.wish, trace=True))
    solution = solve(traced, [size], plan=plan)
    (result,) = solution.results
    simulated = run_of(spec, plan.shown(result.size), result, traced.wish)
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


def _window(config: Config) -> tuple[float, float | None] | None:
    if config.begin is None and config.until is None:
        return None
    begin = 0.0 if config.begin is None else parse_time(config.begin, "--from")
    return begin, None if config.until is None else parse_time(config.until, "--to")


def _is_native(path: str) -> bool:
    name = Path(path).name
    if not name.endswith((*JSON_SUFFIXES, *NATIVE_SUFFIXES)):
        raise InputError(f"{path}: a timeline is a file that ends with .json, .json.gz, .pftrace or .perfetto-trace")
    if not Path(path).parent.is_dir():
        raise InputError(f"{path}: cannot write: no such folder")
    if Path(path).is_dir():
        raise InputError(f"{path}: cannot write: Is a directory")
    return name.endswith(NATIVE_SUFFIXES)


COMMANDS = {"trace": Verb(Config, run)}
