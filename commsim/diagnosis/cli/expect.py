"""``commsim expect MACHINES``: expected time and bus bandwidth by size, interval and floor; a log held against them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from commsim.cli.flags import TOPOLOGY, DefaultOf, Placing, Sizes, Verb, WithJson, flag, percent, repeated, switched
from commsim.cli.flags.faults import HASHES, Faults
from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.core.remark import distinct
from commsim.core.spec import is_whole
from commsim.core.units import count_text, format_size, microseconds, share
from commsim.report.answer import Answer, Lines, Part, Table, comments, remarks

if TYPE_CHECKING:
    from commsim.diagnosis.check_log import CheckedClass, LogCheck
    from commsim.diagnosis.expectation import Expectation, ExpectedSize
    from commsim.nccl.error_model import ErrorModel

EXAMPLES = {
    "expect": """
        commsim expect dgx-h100 --operation all_reduce
        commsim expect dgx-h100 --machines 2,4
        commsim expect dgx-h100 --machines 2 --operation all_reduce --fail nic:m0.nic0
        commsim expect dgx-h100 --operation all_reduce -b 1G -e 16G --for nccl-tests
        commsim expect dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=4,uplinks_per_spine=4 --size 1G --csv a.csv
        commsim run nccl --topology hgx-h100@star:machines=2 -b 1M -e 1G -f 4 > all_reduce.log
        commsim expect hgx-h100 --machines 2 --false-alarms 5% --from all_reduce.log""",
}
COLUMNS = ["operation", "size", "time(us)", "busbw(GB/s)", "low", "high", "floor"]
CHECKED = ["operation", "size", "measured(GB/s)", "expected", "ratio", "low", "floor", "verdict"]
LEAST = ["low", "high", "time(us)"]
FORM_NAMES = ("nccl-tests", "azure-nhc")
FALSE_ALARMS = DefaultOf("commsim.diagnosis.expectation:FALSE_ALARMS", percent)
# What a flag that other programs count machines by leads to.
COUNTED = "; --machines N is the number of machines"


class ExpectConfig(Sizes, Placing, Faults, WithJson):
    """All flags of ``commsim expect``."""

    DEFAULTS: ClassVar[dict[str, Any]] = {"minbytes": "1M", "maxbytes": "16G", "stepfactor": "4"}
    MEANT: ClassVar[Mapping[str, str]] = dict.fromkeys(("--nodes", "--hosts"), COUNTED)
    topology: str = flag("topology", metavar=TOPOLOGY, help="machines on a fabric, or one machine such as dgx-h100")
    machines: str | None = flag(metavar="N[,N]", help="number of machines, if the network is one machine (default: 1)")
    operation: tuple[str, ...] = repeated(
        choices=OPERATIONS, metavar="NAME",
        help="operation; repeatable (default: all_reduce, all_gather, reduce_scatter and all_to_all)",
    )  # fmt: skip
    collective: str | None = flag(metavar="NAME", help="library with its release, such as nccl:version=2.27")
    hashes: int | None = flag(
        metavar="N",
        help="number of hashes of ECMP; times are the median over them (default: %(usual)s)",
        shown={"usual": HASHES},
    )
    false_alarms: str = flag(
        default=FALSE_ALARMS,
        metavar="RATE",
        help="share of healthy machines below the floor of a size; with --from, also of healthy logs",
    )  # fmt: skip
    log: str | None = flag(
        "--from", metavar="FILE", help="log of nccl-tests, or file that compare reads; exits 1 if it is below its floor"
    )
    in_place: bool = switched(help="with --from: use the in-place times (default: out of place)")
    other_gpus: bool = switched(help="with --from: accept a log that names GPUs of another generation")
    form: str | None = flag(
        "--for", choices=FORM_NAMES, metavar="FORM", help="print floors for another program: nccl-tests, azure-nhc"
    )
    report: str | None = flag(
        metavar="FILE.html", help="also write a page: measured and expected bus bandwidth, interval and floor"
    )


def run(config: ExpectConfig) -> Answer:
    """Say what machines should reach, or hold a log against it."""
    from commsim.diagnosis.expectation import expect
    from commsim.diagnosis.floor_exports import FORMS
    from commsim.diagnosis.reached import reached_by, reached_lines

    if config.report is not None:
        from commsim.pages.page.write import check_page

        check_page(config.report)
    machines = read_machines(config.machines)
    options: dict[str, Any] = {
        "machines": machines[0], "n_ranks": config.ranks, "collective": config.collective,
        "placement": config.placement, "hashes": config.hashes,
        "false_alarms": share(config.false_alarms, "--false-alarms"),
    }  # fmt: skip
    for name in config.given("log", "form", "report") if len(machines) > 1 else ():
        raise InputError(f"{name.replace('form', 'for').replace('log', 'from')} takes one number of --machines")
    if config.log is not None:
        return _checked(config, options)
    for name in config.given("in_place", "other_gpus"):
        raise InputError(f"{name} goes with --from FILE")
    options |= {"fail": config.fail, "scale": config.scale, "seed": config.seed or 0}
    every = [expect(config.topology, config.operation, config.sizes(), **options | {"machines": n}) for n in machines]
    if len(machines) > 1:
        return _of_several(every)
    (found,) = every
    if config.form is not None:
        if config.report is not None:
            raise InputError("--report does not go with --for, which prints lines for another program")
        lines = FORMS[config.form](found)
        return Answer([Lines(lines, is_file=True)], [one.row() for one in found.sizes], more={"lines": lines})
    reached = [] if config.given("fail", "scale") else reached_by(found)
    said = [*comments(reached_lines(reached)), *remarks(found.remarks)]
    parts: list[Part] = [table_of_expectation(found), *said, *_reported(found, config.report)]
    more = {"n_ranks": found.n_ranks, "n_machines": found.n_machines, "errors_of": found.errors.kind,
            "measured": [rate.row() for rate in reached]}  # fmt: skip
    return Answer(parts, [one.row() for one in found.sizes], more=more)


def _of_several(every: list[Expectation]) -> Answer:
    """Return the answer about several numbers of machines: a table of each."""
    parts: list[Part] = [table_of_expectation(found) for found in every]
    parts += remarks(distinct(remark for found in every for remark in found.remarks))
    rows = [
        {"n_machines": found.n_machines, "n_ranks": found.n_ranks} | one.row() for found in every for one in found.sizes
    ]
    return Answer(parts, rows)


def read_machines(text: str | None) -> tuple[int | None, ...]:
    """Read ``2,4``; without it the topology says the number.

    Raises
    ------
    InputError
        If a part is no whole number of at least 1, or comes twice.
    """
    parts = [] if text is None else text.split(",")
    if any(not is_whole(part.strip()) for part in parts) or len({*parts}) < len(parts):
        raise InputError(
            f"--machines must be whole numbers such as 2 or 2,4, each once and of at most 9 digits, got {text!r}"
        )
    return tuple(int(part) for part in parts) or (None,)


def _checked(config: ExpectConfig, options: dict[str, Any]) -> Answer:
    """Hold a log against what its machines should reach."""
    from commsim.diagnosis.check_log import check_log

    for name in config.given("fail", "scale"):
        raise InputError(f"{name} does not go with --from: what faults leave is asked without a log")
    for name in config.given("minbytes", "maxbytes", "stepfactor", "stepbytes", "size", "form"):
        raise InputError(f"{name.replace('form', 'for')} does not go with --from, whose sizes are those of the log")
    if len(config.operation) > 1:
        raise InputError("--from takes one --operation, or none for all that the log has")
    operation = config.operation[0] if config.operation else ""
    assert config.log is not None
    found = check_log(config.log, config.topology, operation=operation, in_place=config.in_place,
                      other_gpus=config.other_gpus, **options)  # fmt: skip
    more = {"n_ranks": found.expected.n_ranks, "healthy": found.is_healthy, "faults": found.faults,
            "n_runs": found.n_runs, "errors_of": found.expected.errors.kind,
            "classes": [one.row() for one in found.classes]}  # fmt: skip
    verdict, classes = (lines := judged(found))[:1], lines[1:]
    parts = [
        table_of_check(found),
        *comments([*verdict, *_next_command(config, found), *classes], is_bounded=True),
        *remarks(found.remarks),
        *_reported(found, config.report),
    ]
    return Answer(parts, [row.row() for row in found.rows], more=more, code=int(not found.is_healthy))


def _next_command(config: ExpectConfig, found: LogCheck) -> list[str]:
    """Return the command that finds the causes of a log that is below its floor; none where it is not."""
    below = [one for one in found.classes if one.is_below]
    if not below:
        return []
    words = ["commsim", "compare", found.path, "--topology", found.expected.network]
    if config.operation or len({one.operation for one in found.classes}) > 1:
        words += ["--operation", min(below, key=lambda one: one.ratio / one.floor).operation]
    given = {"--ranks": config.ranks, "--collective": config.collective, "--placement": config.placement,
             "--hashes": config.hashes}  # fmt: skip
    words += [str(word) for flag_and_value in given.items() if flag_and_value[1] for word in flag_and_value]
    words += ["--in-place"] * config.in_place + ["--other-gpus"] * config.other_gpus
    return [f"next: {shlex.join(words)}"]


def judged(found: LogCheck) -> list[str]:
    """Return how a log is judged, and the middle of its sizes by class, beside its floor: the nearest to it first.

    Parameters
    ----------
    found : LogCheck
        The log.
    """
    said = [
        f"{one.operation}, {count_text(one.n_sizes, f'{one.sizes} size')}: {one.ratio:.2f} of what is expected, floor "
        f"{one.floor:.2f} ({_made_of(one)}){': below' if one.is_below else ''}"
        for one in sorted(found.classes, key=lambda one: one.ratio / one.floor)
    ]
    share = "" if found.faults else f"; {found.false_alarms * 100:.3g}% of healthy logs are below"
    return [f"log: {found.verdict}{share}", *said]


def _made_of(one: CheckedClass) -> str:
    """Return which tables a floor is made of."""
    if not one.n_tables:
        return "tables of other machines"
    return f"{count_text(one.n_tables, 'table')} of {count_text(one.n_operators, 'operator')}"


def _reported(found: Expectation | LogCheck, path: str | None) -> list[Part]:
    """Write the page, if it is asked for, and say so."""
    if path is None:
        return []
    from commsim.diagnosis.expectation_page import write_expectation

    write_expectation(found, path)
    return [Lines([f"{path}: written"])]


def table_of_expectation(found: Expectation) -> Table:
    """Return the table of what machines should reach.

    Parameters
    ----------
    found : Expectation
        What they should reach.
    """
    has_faults = any(one.healthy is not None for one in found.sizes)
    rows = [
        [
            one.operation, format_size(one.size), microseconds(one.time, 1),
            *map(_rate, (one.busbw, *([one.healthy or 0.0] if has_faults else ()), *_ends(one))),
        ]
        for one in found.sizes
    ]  # fmt: skip
    columns = [*COLUMNS[:4], *(["without faults"] if has_faults else ()), *COLUMNS[4:]]
    limited = f", limited by {found.limited_by}" if found.limited_by else ""
    where = f"{found.network}, {count_text(found.n_ranks, 'rank')}{limited}"
    title = f"{where}; floor: {found.false_alarms * 100:.3g}% of healthy machines are below it{_known(found.errors)}"
    return Table(columns, rows, title, LEAST, lambda: _operations_of(limited))


def table_of_check(found: LogCheck) -> Table:
    """Return the table of a log beside what its machines should reach.

    Parameters
    ----------
    found : LogCheck
        The log.
    """
    rows = [
        [
            row.expected.operation, format_size(row.expected.size), _rate(row.busbw), _rate(row.expected.busbw),
            f"{row.ratio:.2f}", _rate(row.expected.low), _rate(row.expected.floor), row.verdict,
        ]
        for row in found.rows
    ]  # fmt: skip
    limited = f", limited by {found.expected.limited_by}" if found.expected.limited_by else ""
    where = f"{found.path} on {found.expected.network}{limited}"
    title = f"{where}; floor: {found.false_alarms * 100:.3g}% of healthy machines are below it at a size"
    return Table(CHECKED, rows, title, ["low"], lambda: _operations_of(limited))


def _operations_of(limited: str) -> list[str]:
    """Return the operations beside what limits them, the longest list first: what a narrow title leaves out."""
    return sorted(re.findall(r" \([^)]*\)", limited), key=len, reverse=True)


def _known(errors: ErrorModel) -> str:
    """Return how many operators are known of many machines, which lean on those of few."""
    from commsim.nccl.error_model import MANY, MOST_OF_FEW

    if errors.span != MANY or not errors.is_of_kind:
        return ""
    return f" ({count_text(errors.rows['large'].n_operators, 'operator')} known beyond {MOST_OF_FEW} machines)"


def _ends(one: ExpectedSize) -> tuple[float, float, float]:
    return one.low, one.high, one.floor


def _rate(bytes_per_s: float) -> str:
    gigabytes = bytes_per_s / 1e9
    return f"{gigabytes:.1f}" if gigabytes >= 10 else f"{gigabytes:.3g}"


COMMANDS = {"expect": Verb(ExpectConfig, run)}
