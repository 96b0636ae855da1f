"""``commsim trace``: the timeline of one run for Perfetto and chrome://tracing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.core.units import format_time, parse_time

from . import run
from .flags.costs import read_sizes
from .run.auto import AUTO
from .run.replay import prepare_one

if TYPE_CHECKING:
    from commsim.report.timeline import Timeline

JSON_SUFFIXES, NATIVE_SUFFIXES = (".json", ".json.gz"), (".pftrace", ".perfetto-trace", ".pftrace.gz")
REFUSED = ("operation", "algorithm", "group", "compressor", "bound", "draw", "json", "report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``commsim run``, and those of this verb."""
    run.add_arguments(parser)
    add = parser.add_argument
    add("-o", "--output", required=True, metavar="FILE", help=".json or .json.gz; .pftrace for Perfetto's own format")
    add("--from", dest="begin", metavar="TIME", help="leave out what is complete before, such as 10us (0s)")
    add("--to", dest="until", metavar="TIME", help="leave out what starts after (the end)")
    add("--limit", type=int, metavar="N", help="messages at most: the critical path first, then evenly drawn others")
    add("--tracks", choices=("ranks", "links", "both"), default="both", help="what has lanes (both)")
    add("--arrows", choices=("all", "critical", "none"), default="all", help="messages with an arrow (all)")


def main(args: argparse.Namespace) -> int:
    """Play the largest size once, and write its timeline."""
    native = _is_native(args.output)
    for name in REFUSED:
        if getattr(args, name, None):
            raise InputError(f"--{name} has no timeline; commsim trace plays one collective once")
    if args.engine == AUTO:
        raise InputError("--engine auto chooses by errors in total time, of which a timeline has more; name an engine")
    specs = args.collective or ["ring_all_reduce"]
    if len(specs) > 1:
        raise InputError(f"a timeline is of one collective, got {len(specs)}")
    if native:
        from commsim.report.timeline_files import require_perfetto

        require_perfetto()
    size = read_sizes(args)[-1]
    timeline = _timeline(args, specs[0], float(size))
    if native:
        from commsim.report.timeline_files import write_perfetto

        n = write_perfetto(timeline, args.output)
    else:
        from commsim.report.timeline_files import write_chrome

        n = write_chrome(timeline, args.output)
    shown, n_all = len(timeline.transfers), len(timeline.run.n_bytes)
    result = timeline.run.result
    print(f"# {specs[0]} of {size} bytes on {result.n_ranks} ranks, engine {result.engine}: {result.time * 1e6:.6g} us")
    print(f"# {args.output}: {shown} of {n_all} messages, {n} events")
    return 0


def _timeline(args: argparse.Namespace, spec: str, size: float) -> Timeline:
    from commsim import __version__
    from commsim.core.operations import OPERATIONS
    from commsim.report.simulated_run import simulate_run
    from commsim.report.timeline import TRACKS, make_timeline

    window = _window(args)
    prepared, options = prepare_one(args, spec)
    promise = OPERATIONS.get(prepared.schedule.operation)
    played = simulate_run(spec, prepared, 0.0 if promise is not None and promise.signals else size, options)
    end = float(played.trace.done.max(initial=0.0))
    if window is not None and window[1] is None and window[0] >= end:
        raise InputError(f"--from must be before the end of the run, {format_time(end)}, got {args.begin}")
    return make_timeline(
        played,
        window=None if window is None else (window[0], end if window[1] is None else window[1]),
        limit=args.limit,
        show=TRACKS if args.tracks == "both" else (args.tracks,),
        arrows=args.arrows,
        provenance={"commsim": __version__, "collective": spec, "topology": args.topology, "size_B": f"{size:.0f}"},
    )


def _window(args: argparse.Namespace) -> tuple[float, float | None] | None:
    if args.begin is None and args.until is None:
        return None
    begin = 0.0 if args.begin is None else parse_time(args.begin, "--from")
    return begin, None if args.until is None else parse_time(args.until, "--to")


def _is_native(path: str) -> bool:
    name = Path(path).name
    if not name.endswith((*JSON_SUFFIXES, *NATIVE_SUFFIXES)):
        raise InputError(f"{path}: a timeline is a file that ends with .json, .json.gz, .pftrace or .perfetto-trace")
    if not Path(path).parent.is_dir():
        raise InputError(f"{path}: cannot write: no such folder")
    if Path(path).is_dir():
        raise InputError(f"{path}: cannot write: Is a directory")
    return name.endswith(NATIVE_SUFFIXES)
