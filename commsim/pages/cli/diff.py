"""``commsim diff``: two results, sweeps or schedules side by side; with ``--detail`` also runs, simulated again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import Verb, WithJson, flag, switched
from commsim.core.errors import CommsimError, InputError
from commsim.core.remark import as_remarks
from commsim.core.units import count_text
from commsim.report.answer import Answer, Part, Table, comments, remarks

if TYPE_CHECKING:
    from commsim.pages.rows.difference import Difference
    from commsim.pages.simulated_run import SimulatedRun

EXAMPLES = {
    "diff": """
        commsim run ring_all_reduce --topology star:n_hosts=4 -b 1M -e 4M --json a.json
        commsim run ring_all_reduce --topology ring:n_hosts=4 -b 1M -e 4M --json b.json
        commsim diff a.json b.json
        commsim diff a.json b.json --detail
        commsim diff a.json b.json --timeline both.json.gz""",
}

MAX_LISTED, MAX_MESSAGES = 20, 100_000
# Endings of what is no log.
NO_LOG = (".json", ".npz", ".gz", ".html")
# Relative difference of times up to which they are called equal.
EQUAL = 1e-6
TASK = ("collective", "operation", "n_ranks", "size_B")
# Flag that the configuration of a run has, which can be simulated again.
RUN = "collective"


class DiffConfig(WithJson):
    """All flags of ``commsim diff``."""

    a: str = flag(
        "a",
        metavar="A",
        help="JSON that `commsim run --json` or `place --json` wrote, a sweep's folder, a schedule (.npz), or a log",
    )
    b: str = flag("b", metavar="B", help="the other one")
    output: str | None = flag("-o", metavar="FILE.html", help="write a page with the rows of both .json files")
    timeline: str | None = flag(
        metavar="FILE.json.gz", help="write both runs at their largest common size, for ui.perfetto.dev"
    )
    detail: bool = switched(
        help="simulate the largest runs again, and compare their critical paths and links; --timeline does so, too"
    )


def run(config: DiffConfig) -> Answer:
    """Read both, and return pairs, what only one has, and links and critical paths side by side.

    Raises
    ------
    InputError
        If a flag is given that has no effect here, or nothing is common to both.
    """
    if config.a.endswith(".npz") and config.b.endswith(".npz"):
        return _schedules(config)
    if all(Path(path).is_file() and Path(path).suffix not in NO_LOG for path in (config.a, config.b)):
        return _logs(config)
    from commsim.pages.page.write import check_page, write_page
    from commsim.pages.rows.difference import difference, read_rows, runs_beside
    from commsim.pages.rows.study_files import read_together
    from commsim.placement.cli.beside import beside, best_of

    if (a_placed := best_of(config.a)) and (b_placed := best_of(config.b)):
        if flags := config.given("output", "timeline", "detail"):
            raise InputError(f"{flags[0]} has no effect on what `commsim place` wrote")
        return beside(a_placed, b_placed, (config.a, config.b))
    if config.timeline is not None and not config.timeline.endswith((".json", ".json.gz")):
        raise InputError(f"--timeline writes .json or .json.gz, got {config.timeline!r}")
    if config.output is not None:
        check_page(config.output)
    (config_a, a), (config_b, b) = read_rows(config.a), read_rows(config.b)
    changes = difference(a, b, config_a, config_b)
    parts = _pairs(changes, config.a, config.b)
    if len(a) == len(b) == 1 and "step_s" in a[0] and "step_s" in b[0]:
        parts.append(_of_steps(a[0], b[0]))
    path: Sequence[Mapping[str, Any]] = ()
    links: Sequence[Mapping[str, Any]] = ()
    written = False
    if (config.detail or config.timeline is not None) and RUN in config_a and RUN in config_b:
        sizes = {row.get("size_B") for row in a} & {row.get("size_B") for row in b}
        both = [[row for row in rows if row.get("size_B") in sizes] for rows in (a, b)]
        (run_a, why_a), (run_b, why_b) = (
            _largest(*side, _most_changed(changes, sizes))
            for side in ((config_a, both[0], config.a), (config_b, both[1], config.b))
        )
        parts += remarks(as_remarks(_no_paths({config.a: why_a, config.b: why_b}), "no-path"))
        if run_a is not None and run_b is not None:
            path, links = runs_beside(run_a, run_b)
            what = f"{run_a.name} and {run_b.name}, {run_a.result.size:.0f} B"
            parts.append(_sides(path, "cause", f"critical path, us: {what}"))
            if apart := [link for link in links if link["a_s"] != link["b_s"]]:
                parts.append(_sides(apart, "link", "busy time of the links that differ most, us"))
            if config.timeline is not None:
                parts += comments([_write_timeline(run_a, run_b, config.timeline)])
                written = True
    if config.timeline is not None and not written:
        raise InputError("--timeline needs a run in detail of both results")
    if config.output is not None:
        left_out = write_page(read_together((config.a, config.b)), config.output)
        lines = [f"figure left out: {name}: {why}" for name, why in left_out.items()]
        parts += comments([*lines, f"{config.output}: written"])
    more: dict[str, Any] = {"only_a": list(changes.only_a), "only_b": list(changes.only_b)}
    differs = {name: {"a": of[0], "b": of[1]} for name, of in changes.differs.items()}
    more |= {"differs": differs, "critical_path": list(path), "links": list(links)}
    return Answer(parts, changes.pairs, config.flags("timeline", "output"), more)


def _logs(config: DiffConfig) -> Answer:
    """Put two measured tables side by side."""
    from commsim.real.comparison.two_logs import table_of_logs, two_logs

    if flags := config.given("output", "timeline", "detail"):
        raise InputError(f"{flags[0]} is of results, and cannot be used with logs")
    logs = two_logs(config.a, config.b, None, None)
    pairs = logs.pairs
    more: dict[str, Any] = {"only_a": [], "only_b": [], "differs": {}, "critical_path": [], "links": []}
    lines = comments(["causes of what one lacks: commsim compare HEALTHY BAD --topology NAME"])
    rows = [pair.row() for pair in pairs]
    parts = [table_of_logs(pairs, logs.title), *lines, *remarks(logs.notes)]
    return Answer(parts, rows, config.flags("timeline", "output"), more)


def _schedules(config: DiffConfig) -> Answer:
    """Compare two schedules."""
    from commsim.core.files.schedule_file import read_schedule
    from commsim.pages.rows.schedules_beside import compare_schedules

    if flags := config.given("output", "timeline", "detail"):
        raise InputError(f"{flags[0]} is of results, and cannot be used with schedules")
    lines, differs = compare_schedules(read_schedule(config.a), read_schedule(config.b))
    cells = [[name, _word(x), _word(y)] for name, (x, y) in [*differs.items()][:MAX_LISTED]]
    title = "sent: parts of the size, by sender and receiver"
    parts: list[Part] = [*comments([f"A: {config.a}, B: {config.b}", lines])]
    parts += [Table(["what", "A", "B"], cells, title)] if cells else []
    if len(differs) > MAX_LISTED:
        parts += comments([f"{len(differs) - MAX_LISTED} more differences; --json has all"])
    more: dict[str, Any] = {"only_a": [], "only_b": [], "critical_path": [], "links": []}
    more["differs"] = {name: {"a": x, "b": y} for name, (x, y) in differs.items()}
    return Answer(parts, [], config.flags("timeline", "output"), more)


def _write_timeline(a: SimulatedRun, b: SimulatedRun, path: str) -> str:
    """Write both runs into one file for Perfetto, A above B on the same time axis; say how much of them is in it."""
    from commsim.pages.perfetto_trace import write_beside
    from commsim.pages.timeline import make_timeline

    n = write_beside({"A": make_timeline(a, limit=MAX_MESSAGES), "B": make_timeline(b, limit=MAX_MESSAGES)}, path)
    shown = [min(len(run.n_bytes), MAX_MESSAGES) for run in (a, b)]
    return f"{path}: {shown[0]} of {len(a.n_bytes)} messages of A, {shown[1]} of {len(b.n_bytes)} of B, {n} events"


def _pairs(difference: Difference, a: str, b: str) -> list[Part]:
    """Return what the two are, the pairs of equal configuration, and the rows that only one has."""
    files = [f"A: {a}, B: {b}"]
    files += [f"{name}: A {_flag(of[0])}, B {_flag(of[1])}" for name, of in difference.differs.items()]
    keys = [name for name in difference.pairs[0] if name not in ("a", "b", "time_ratio")]
    every = dict.fromkeys(keys, difference.pairs) | {
        "asked": (*difference.pairs, *difference.only_a, *difference.only_b)
    }
    varying = [name for name in keys if name in TASK or len({str(one[name]) for one in every[name]}) > 1]
    rows = []
    for pair in difference.pairs[:MAX_LISTED]:
        cells = [_word(pair[name]) for name in varying]
        cells += [_times(pair[side].get("time_s"), 1e6) for side in ("a", "b")]
        cells.append("-" if pair["time_ratio"] is None else f"{pair['time_ratio']:.4g}")
        cells += [_times(pair[side].get("busbw_Bps"), 1e-9) for side in ("a", "b")]
        rows.append([*cells, *(str(pair[side].get("busiest_link") or "-") for side in ("a", "b"))])
    columns = [*varying, "A(us)", "B(us)", "B/A", "A(GB/s)", "B(GB/s)", "A busiest", "B busiest"]
    least = ["A busiest", "B busiest", "operation", "n_ranks", "A(GB/s)", "B(GB/s)"]
    alike = "of both, alike but for what is named above" if difference.differs else "of the same configuration"
    columns, rows = _filled(columns, rows)
    table = Table(columns, rows, f"{count_text(len(difference.pairs), 'row')} {alike}", least)
    lines: list[str] = []
    if len(difference.pairs) > MAX_LISTED:
        lines.append(f"{len(difference.pairs) - MAX_LISTED} more pairs; --json and --csv have all")
    for side, only in (("A", difference.only_a), ("B", difference.only_b)):
        shown = [" ".join(f"{name}={_word(row[name])}" for name in varying) for row in only[:MAX_LISTED]]
        lines += [f"only in {side}: {one}" for one in shown]
        if len(only) > MAX_LISTED:
            lines.append(f"only in {side}: {len(only) - MAX_LISTED} more")
    return [*comments(files), table, *comments([*_changed(difference), *lines])]


def _filled(columns: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Leave out the columns, after those of the times, that no row has a value for: a step has no bus bandwidth."""
    times = columns.index("B/A")
    kept = [i for i in range(len(columns)) if i <= times or any(row[i] != "-" for row in rows)]
    return [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]


def _of_steps(a: Mapping[str, Any], b: Mapping[str, Any]) -> Table:
    """Put what two training steps consist of side by side: computation, bubble and exposed traffic."""
    names = [name for name in a if name in ("compute_s", "bubble_s") or name.startswith("exposed_")]
    rows = [
        {"part": name.removesuffix("_s").replace("_", " "), "a_s": a[name], "b_s": b.get(name)}
        for name in names
        if a[name] or b.get(name)
    ]
    return _sides(rows, "part", "parts of the step, us")


def _changed(difference: Difference) -> list[str]:
    """Say which collectives are faster, slower or as fast in B, over all their sizes; a single row says it itself."""
    if len(difference.pairs) < 2:
        return []
    ratios: dict[str, list[float]] = {}
    for pair in difference.pairs:
        if pair.get("collective") and pair["time_ratio"]:
            ratios.setdefault(str(pair["collective"]), []).append(pair["time_ratio"])
    kinds: dict[str, list[str]] = {"faster in B": [], "slower in B": [], "equal": [], "faster or slower by size": []}
    for name, of in ratios.items():
        low, high = min(of), max(of)
        times = f"{low:.4g}" if f"{low:.4g}" == f"{high:.4g}" else f"{low:.4g} to {high:.4g}"
        if max(1 - low, high - 1) < EQUAL:
            kinds["equal"].append(name)
        elif high < 1 + EQUAL:
            kinds["faster in B"].append(f"{name} (B/A {times})")
        else:
            kind = "slower in B" if low > 1 - EQUAL else "faster or slower by size"
            kinds[kind].append(f"{name} (B/A {times})")
    return [f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names]


def _sides(rows: Sequence[Mapping[str, Any]], name: str, title: str) -> Table:
    cells = [[row[name], *(_times(row[side], 1e6) for side in ("a_s", "b_s"))] for row in rows]
    return Table([name, "A(us)", "B(us)"], cells, title)


def _times(value: float | None, factor: float) -> str:
    return "-" if value is None else f"{round(value * factor, 9):.6g}"


def _word(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _flag(value: Any) -> str:
    return "not given" if value is None else str(value)


def _most_changed(difference: Difference, sizes: set[Any]) -> str:
    """Return the collective whose time at the largest common size differs most; empty where A and B have another."""
    largest = max((size for size in sizes if size is not None), default=0)
    alike = [pair for pair in difference.pairs if pair.get("size_B") == largest and pair["time_ratio"]]
    most = max(alike, key=lambda one: abs(math.log(one["time_ratio"])), default={})
    return str(most.get("collective", ""))


def _largest(
    config: Mapping[str, Any], rows: list[dict[str, Any]], path: str, wanted: str
) -> tuple[SimulatedRun | None, dict[str, str]]:
    """Simulate one collective of a result again at its largest size, the wanted one or the first; or return why not."""
    from commsim.cli.run_flags import config_of

    from .replay import replay_one

    try:
        return replay_one(config_of(config, path), rows, wanted)
    except CommsimError as error:
        return None, {path: str(error)}


def _no_paths(why: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Say which files' collectives have no critical path, and why: once what holds for both files."""
    files: dict[str, list[str]] = {}
    for path, of in why.items():
        for spec, text in of.items():
            line = text if text.startswith(f"{spec}: ") or spec == path else f"{spec}: {text}"
            files.setdefault(line, []).append(path)
    return [f"no critical path: {text if len(of) > 1 else f'{of[0]}: {text}'}" for text, of in files.items()]


COMMANDS = {"diff": Verb(DiffConfig, run)}
