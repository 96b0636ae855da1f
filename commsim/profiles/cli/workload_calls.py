"""``commsim workload calls``: collective calls of a profile, its job and graph, and its step on another network."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.cli.flags import Verb
from commsim.cli.flags.outputs import check_written
from commsim.core.errors import InputError
from commsim.core.remark import as_remarks
from commsim.core.units import format_size, format_time, parse_time
from commsim.report.answer import Answer, Lines, Part, Table, comments, remarks

from .calls_flags import WorkloadCallsConfig
from .retime import retimed
from .workload_profile import ProfileConfig, profile

if TYPE_CHECKING:
    from commsim.profiles.calls import RecordedCall
    from commsim.profiles.one_iteration import RankIteration

COLUMNS = ["operation", "size", "group", "ranks", "calls", "median", "untimed"]


# Flags of the step on another network, and those of the profile as it is.
RETIMED = ("ranks", "grow", "algorithm", "phases", "timeline", "report")
AS_IT_IS = ("job", "graph")


def run(config: WorkloadCallsConfig) -> Answer:
    """Read the profiles, and write what is asked for."""
    from commsim.profiles.kernel_names import KernelNames, sizes_by_name
    from commsim.profiles.listed import read_listed
    from commsim.profiles.one_iteration import last_iteration, periodic_job, task_tables

    check_written(
        [config.job, config.graph, config.phases, config.timeline, config.report, config.json, config.csv], config.files
    )
    period = _period(config.period)
    if config.network is not None or config.bandwidth is not None:
        if flags := config.given(*AS_IT_IS):
            hint = "; --name names the job, --phases writes it" if flags[0] == "--job" else ""
            raise InputError(f"{flags[0]} is of the profile as it is; leave out --network and --bandwidth{hint}")
        return retimed(config, period)
    if flags := config.given(*RETIMED):
        raise InputError(f"{flags[0]} goes with --network or --bandwidth, on which the step is timed again")
    if config.graph and Path(config.graph).suffix not in (".toml", ".json"):
        raise InputError(f"{config.graph}: a graph of tasks is a file that ends with .toml or .json")
    gap = parse_time(config.gap, "--gap")
    notes: list[str] = []
    names, sizes = KernelNames(config.kernels), sizes_by_name(config.size)
    profiles = [read_listed(path, names, sizes, notes) for path in config.files]
    said = (*notes, *_missing_ranks([listed.calls for listed in profiles]))
    calls, steps = profiles[0].calls, profiles[0].steps
    title = f"{config.files[0]}: {len(calls)} calls of rank {_cell_text(calls[0].rank)}"
    parts: list[Part] = [*remarks(as_remarks(said, "read")), Table(COLUMNS, _rows(calls), title)]
    if not (config.job or config.graph or config.json or config.csv or config.period):
        return Answer(parts)
    profiles[0].require_iteration(config.files[0])
    iteration = last_iteration(calls, steps, period)
    name = config.name or Path(config.files[0]).name.split(".")[0]
    seen = f"{iteration.n_seen} in the profile" if iteration.n_seen > 1 else "the only one in the profile"
    parts += comments([f"iteration: {len(iteration.calls)} calls in {format_time(iteration.period)}, {seen}"])
    if config.job:
        from commsim.core.files.whole_files import write_json

        write_json(config.job, [periodic_job(iteration, name, gap)])
    if config.graph:
        from commsim.core.files.whole_files import write_tree

        write_tree(config.graph, task_tables(iteration))
    parts.append(Lines([f"{path}: written" for path in filter(None, (config.job, config.graph))]))
    return Answer(parts, _json_rows(iteration), more={"period_s": iteration.period})


def _period(text: str | None) -> float | None:
    if text is None:
        return None
    period = parse_time(text, "--period")
    if not period:
        raise InputError(f"--period must be more than 0, got {text!r}")
    return period


def _rows(calls: tuple[RecordedCall, ...]) -> list[list[str]]:
    """One row for each kind of call, those that send the most first."""
    import statistics

    kinds: dict[tuple[str, float, str, int | None], list[float | None]] = {}
    for call in calls:
        kinds.setdefault((call.operation, call.size, call.group, call.n_ranks), []).append(call.duration)
    rows = []
    for kind, durations in sorted(kinds.items(), key=lambda item: -item[0][1] * len(item[1])):
        operation, size, group, n_ranks = kind
        times = [time for time in durations if time is not None]
        median = format_time(statistics.median(times)) if times else "-"
        said = format_size(size) if size or operation == "barrier" else _cell_text(None)
        rows.append([operation, said, group or "-", _cell_text(n_ranks), f"{len(durations)}", median,
                     f"{len(durations) - len(times)}"])  # fmt: skip
    return rows


def _missing_ranks(profiles: list[tuple[RecordedCall, ...]]) -> list[str]:
    """Name the ranks without a file, and refuse two files of one rank."""
    ranks = [calls[0].rank for calls in profiles]
    known = [rank for rank in ranks if rank is not None]
    if len(set(known)) < len(known):
        twice = next(rank for rank in known if known.count(rank) > 1)
        raise InputError(f"two files are of rank {twice}; give one file for each rank")
    expected = max((call.n_ranks or 0 for calls in profiles for call in calls), default=0)
    missing = list(islice((rank for rank in range(expected) if rank not in known), 9))
    if len(known) < len(ranks) or not missing:
        return []
    names = ", ".join(map(str, missing[:8])) + (" and so on" if len(missing) > 8 else "")
    return [f"{len(known)} of {expected} ranks have a file; without one: {names}"]


def _json_rows(iteration: RankIteration) -> list[dict[str, object]]:
    return [
        {"operation": c.operation, "size_B": c.size, "n_ranks": c.n_ranks, "group": c.group,
         "start_s": c.start - iteration.begin, "time_s": c.duration}
        for c in iteration.calls
    ]  # fmt: skip


def _cell_text(value: int | None) -> str:
    return "unknown" if value is None else str(value)


COMMANDS = {
    "workload calls": Verb(
        WorkloadCallsConfig,
        run,
        "read the collective calls of a profile (Kineto, flight recorder, Chakra); re-time its step on another network",
    ),
    "workload profile": Verb(ProfileConfig, profile, "measure the gradients of a torch module: sizes and ready times"),
}
