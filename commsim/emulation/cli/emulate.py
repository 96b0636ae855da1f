"""``commsim emulate``: an unmodified program on an emulated network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from commsim.cli.flags import TOPOLOGY, CostFlags, DefaultOf, Verb, WithJson, flag, repeated
from commsim.cli.flags.faults import Faults, Hashes
from commsim.core.errors import InputError
from commsim.core.limits import EXPECTED
from commsim.core.network import ROUTINGS
from commsim.core.units import format_size, format_time, parse_size
from commsim.prediction.options import COSTS
from commsim.report.answer import Answer, Facts, Part, Table, comments, remarks
from commsim.report.terminal import show_step

if TYPE_CHECKING:
    from commsim.emulation.emulate import Emulation

EXAMPLES = {
    "emulate": """
        commsim emulate -n 2 --topology star:n_hosts=2 -- python examples/ping_pong.py
        commsim emulate -n 2 --topology star:n_hosts=2,bandwidth=10Gbps --ranks-as threads -- python \
            examples/ping_pong.py
        commsim emulate -n 2 --topology star:n_hosts=2,latency=50us -- python examples/ping_pong.py
        commsim emulate -n 2 --topology star:n_hosts=2 --overhead 1us -- python examples/ping_pong.py
        commsim emulate -n 2 --topology star:n_hosts=2 --json emulated.json -- python examples/ping_pong.py""",
}

COLUMNS = ["operation", "site", "algorithm", "ranks", "size", "calls", "time(us)", "exposed(us)"]
# Flags that have the name of what they give.
OF_NETWORK = ("placement", "routing", "seed", "fail", "scale", *COSTS)
SAME = (*OF_NETWORK, "library", "algorithm", "compute", "eager", "leave", "data", "ranks_as", "clock")


class EmulateConfig(WithJson, Hashes, Faults, CostFlags):
    """All flags of ``commsim emulate``."""

    TITLE: ClassVar[str] = ""
    program: tuple[str, ...] = flag(
        "program", nargs="...", metavar="-- python PROG.py ARGS", help="program that each rank runs"
    )
    ranks: int = flag("-n", "--ranks", required=True, metavar="N", help="number of ranks")
    topology: str = flag(required=True, metavar=TOPOLOGY, help="network, such as star:n_hosts=8; latency= is per link")
    placement: str | None = flag(
        metavar="NAME|FILE", help="packed, spread, random or another strategy, or a file (default: packed)"
    )
    routing: str | None = flag(metavar="NAME", help=f"routing, in place of the network's own: {', '.join(ROUTINGS)}")
    library: str | None = flag(
        metavar="NAME",
        help="library whose rules choose algorithms: mpich (default for MPI programs), open-mpi, open-mpi-4.0 or gloo; "
        "the default for PyTorch programs is to choose as `commsim run` does",
    )
    algorithm: tuple[str, ...] = repeated(
        metavar="OPERATION=NAME", help="algorithm of an operation, such as all_reduce=ring_all_reduce; repeatable"
    )
    compute: str = flag(
        default=DefaultOf("commsim.emulation.emulate:emulate.compute"),
        metavar="none|measured[:F]|roofline:GPU[:F]|TRACE.json",
        help="time of computation: none, the rank's processor time, or that of a GPU from its peak rates or a Kineto "
        "trace; with a GPU, one process runs for all ranks, without data",
    )  # fmt: skip
    stages: int = flag(
        default=1, metavar="N",
        help="with --compute roofline or --data none: number of pipeline stages, equal groups of consecutive ranks; "
        "one process runs for each stage",
    )  # fmt: skip
    eager: str = flag(
        default=DefaultOf("commsim.emulation.emulate:emulate.eager"),
        metavar="SIZE",
        help="largest message that is sent before its receive is posted",
    )
    leave: str = flag(
        default=DefaultOf("commsim.emulation.emulate:emulate.leave"), choices=("together", "own"),
        help="when ranks leave a collective: at its end, or when their own part is complete",
    )  # fmt: skip
    data: str = flag(
        default=DefaultOf("commsim.emulation.emulate:emulate.data"),
        choices=("real", "none"),
        help="real: move data; none: simulate only time, which needs no memory for data",
    )
    ranks_as: str = flag(
        default=DefaultOf("commsim.emulation.emulate:emulate.ranks_as"),
        choices=("auto", "threads", "processes"),
        help="auto: processes up to %(most)s ranks, else threads",
        shown={"most": DefaultOf("commsim.emulation.emulate:MOST_PROCESSES")},
    )
    clock: str = flag(
        default=DefaultOf("commsim.emulation.emulate:emulate.clock"), choices=("virtual", "wall"),
        help="clock that time.time, perf_counter and monotonic read in the program: virtual, or that of this machine",
    )  # fmt: skip
    report: str | None = flag(metavar="FILE.html", help="write a page: calls of each rank, loads of links")
    phases: str | None = flag(
        metavar="FILE.json",
        help="with --compute roofline:GPU or TRACE.json: write the last step's phases as a job for `commsim place`",
    )
    timeline: str | None = flag(
        metavar="FILE.json", help="write a timeline for Perfetto: the calls of each rank, or the work on its streams"
    )


def run(config: EmulateConfig) -> Answer:
    """Run the program, and report what it called."""
    EXPECTED.is_shown = sys.stdout.isatty()  # then the program's own lines show progress, and none is among them
    if EXPECTED.is_shown:  # where to load all this took long, there is one already
        show_step()
    from commsim.emulation.emulate import emulate

    program = config.program[config.program[:1] == ("--",) :]
    if not program:
        raise InputError("a program is needed after --, such as -- python prog.py")
    _check_files(config)
    if config.compute.partition(":")[0] not in ("none", "measured") or config.stages != 1:
        return _alike(config, program)
    if config.phases is not None:
        raise InputError("--phases writes the last step of ranks that are alike: it needs --compute roofline:GPU")
    if (config.hashes or 1) > 1:
        raise InputError(
            f"--hashes {config.hashes}: ranks with data run once, with one hash of routes; --seed N is another one"
        )
    options: dict[str, Any] = {name: getattr(config, name) for name in SAME if getattr(config, name) is not None}
    records = config.report is not None or config.timeline is not None
    emulation = emulate(program, config.topology, config.ranks, records=records, **options)
    parts, title = _parts(emulation), " ".join(program)
    if config.timeline is not None:
        from commsim.emulation.page_of_program import write_calls

        parts += comments([f"{config.timeline}: {write_calls(emulation, config.timeline)} events"])
    if config.report is not None:
        from commsim.emulation.page_of_program import study_of_program
        from commsim.pages.page.write import write_report
        from commsim.pages.study import made_by
        from commsim.version import __version__

        of = made_by("emulate", {"version": __version__, **config.flags("report", "timeline")})
        parts += comments(write_report(study_of_program(title, emulation, of), config.report))
    flags = {**config.flags("program"), "program": list(program)}
    return Answer(parts, [row.columns() for row in emulation.rows], flags, _more(emulation))


def _check_files(config: EmulateConfig) -> None:
    """Refuse files that cannot be written, before the program runs."""
    if config.report is not None:
        from commsim.pages.page.write import check_page

        check_page(config.report)
    if config.phases is not None:
        from commsim.core.files.whole_files import check_writable

        check_writable(Path(config.phases))
    if config.timeline is not None:
        from commsim.core.files.whole_files import check_writable

        if not config.timeline.endswith((".json", ".json.gz")):
            raise InputError(f"--timeline must be a file .json or .json.gz, got {config.timeline!r}")
        check_writable(Path(config.timeline))


def _alike(config: EmulateConfig, program: tuple[str, ...]) -> Answer:
    """Run one rank for all, without data."""
    from commsim.emulation.alike.compute import compute_of
    from commsim.emulation.alike.run_alike import run_alike

    from .alike import answer_of

    if config.library is not None:
        raise InputError("--library chooses for ranks with data; of ranks that are alike, --algorithm names algorithms")
    compute = compute_of(config.compute)
    algorithms = dict(text.partition("=")[::2] for text in config.algorithm)
    options: dict[str, Any] = {
        name: getattr(config, name) for name in (*OF_NETWORK, "hashes") if getattr(config, name) is not None
    }
    if config.stages != 1 and compute.kind == "measured":
        raise InputError("--stages N runs a process for many ranks: it needs --compute roofline:GPU, none, or a trace")
    eager = parse_size(config.eager, "eager")
    how = algorithms, config.stages, eager, config.clock
    alike_run = run_alike(program, config.topology, config.ranks, compute, *how, **options)
    return answer_of(alike_run, {**config.flags("program"), "program": list(program)}, config.timeline, config.phases)


def _parts(emulation: Emulation) -> list[Part]:
    loads = emulation.link_bytes / emulation.network.bandwidth
    busiest = int(loads.argmax())
    link = f"{emulation.network.link_name(busiest)}, {format_size(float(emulation.link_bytes[busiest]))}"
    whole, exposed = emulation.step
    part = f"{exposed / whole if whole else 0:.1%}, mean of the ranks"
    n_steps = len(emulation.steps)
    steps = {"exposed": f"{format_time(exposed)} of the {'step' if n_steps else 'time'}, {part}"}
    if n_steps:
        steps = {"step": f"{format_time(whole)}, the last one"} | steps
    facts = {
        "time": format_time(emulation.time) + (f", {n_steps} steps" if n_steps else ""),
        **steps,
        "computing": f"{format_time(float(emulation.computed.max()))} at most on any rank",
        "busiest link": f"{link}, {format_time(float(loads[busiest]))} at its rate" if loads.any() else "none was used",
    }
    rows = [
        [row.operation, row.site or "-", row.algorithm or "-", str(row.n_ranks), format_size(row.n_bytes),
         str(row.n_calls), f"{row.seconds / row.n_calls * 1e6:.4g}",
         f"{row.exposed_seconds / row.n_calls * 1e6:.4g}"]
        for row in emulation.rows
    ]  # fmt: skip
    title = "calls of all ranks by site: mean time of one, and for how long its rank waited"
    return [*remarks(emulation.remarks), Facts(facts), Table(COLUMNS, rows, title, least=("ranks", "algorithm"))]


def _more(emulation: Emulation) -> dict[str, object]:
    return {
        "time_s": emulation.time, "computed_s": emulation.computed.tolist(), "end_s": emulation.ends.tolist(),
        "link_bytes_B": {emulation.network.link_name(k): float(n) for k, n in enumerate(emulation.link_bytes) if n},
        "simulations": emulation.n_simulated, "exposed_s": emulation.step[1],
        **({"step_s": emulation.step[0]} if len(emulation.steps) else {}),
    }  # fmt: skip


COMMANDS = {"emulate": Verb(EmulateConfig, run)}
