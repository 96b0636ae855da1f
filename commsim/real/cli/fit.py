"""``commsim fit MEASURED``: start-up time, bandwidth and efficiency of measurements, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import Verb, WithJson, flag, switched
from commsim.core.errors import InputError
from commsim.core.limits import check_room_for_libraries
from commsim.core.operations import OPERATIONS
from commsim.core.remark import Remark, as_remarks
from commsim.core.units import count_text, format_bandwidth, format_size, format_time, parse_bandwidth, write_time
from commsim.report.answer import Answer, Lines, Part, Table, comments, remarks

if TYPE_CHECKING:
    from commsim.formats.measurement import Measurement
    from commsim.real.comparison.alpha_beta_fit import Fit
    from commsim.real.comparison.bootstrap import FittedValue

EXAMPLES = {
    "fit": """
        commsim run ring_all_reduce --topology star:n_hosts=4,latency=2us -b 1K -e 64M -f 4 > measured.txt
        commsim fit measured.txt --collective ring_all_reduce
        commsim fit measured.txt --collective ring_all_reduce --line-rate 100Gbps
        commsim fit measured.txt --collective ring_all_reduce --seed 3
        commsim fit measured.txt --collective ring_all_reduce --json fit.json""",
}

COLUMNS = ["operation", "algorithm", "ranks", "rows", "a: start-up", "(95 %)", "1/b: S per s", "(95 %)", "busbw",
           "half at", "residual"]  # fmt: skip
LEAST = ["half at", "(95 %)", "rows", "operation", "ranks"]


def network_of(collective: str, fits: Sequence[Fit]) -> tuple[list[Part], dict[str, Any]]:
    """Return the network that the fit of the algorithm asks for: as flags of ``commsim run``, and for the JSON."""
    from collectives import COLLECTIVES
    from commsim.real.comparison.alpha_beta_fit import network_costs

    operation = COLLECTIVES[collective].metadata["operation"] if collective in COLLECTIVES else ""
    chosen = [fit for fit in fits if fit.operation == operation]
    if len(chosen) != 1:
        raise InputError(
            f"--collective {collective}: {len(chosen)} of the fits are for its operation; choose one with --operation"
        )
    middle, fastest, slowest = network_costs(chosen[0], collective)
    spec = f"star:n_hosts={chosen[0].n_ranks},bandwidth={middle.B:.6g}B/s,latency={_short(middle.L / 2)}"
    text = (
        f"{collective} on {count_text(chosen[0].n_ranks or 0, 'rank')}: L + o = {format_time(middle.L)} a message "
        f"({format_time(fastest.L)}..{format_time(slowest.L)}), B = {format_bandwidth(middle.B)} "
        f"({slowest.B / 1e9:.4g}..{fastest.B / 1e9:.4g} GB/s, reducing included); L and o come as a sum"
    )
    row = {"collective": collective, "alpha_s": middle.L, "bandwidth_Bps": middle.B, "topology": spec}
    return [*comments([text]), Lines([f"commsim run --collective {collective} --topology '{spec}'"])], row


def loggp_of(rows: Sequence[Measurement], seed: int) -> tuple[list[Part], dict[str, Any]]:
    """Return what is known of LogGP's numbers, with the flags of ``commsim run`` that stand for them."""
    from commsim.real.comparison.alpha_beta_fit import fit_loggp

    loggp = fit_loggp(rows, seed)
    known = [
        f"{name} = {format_time(value.value)} ({format_time(value.low)}..{format_time(value.high)})"
        for name, value in (("L + o", loggp.latency_and_overhead), ("max(g, o)", loggp.gap_or_overhead))
        if value is not None
    ]
    first = (
        f"LogGP: {', '.join(known)}, G = {loggp.per_byte.value * 1e9:.4g} ns/B, "
        f"which is {1 / loggp.per_byte.value / 1e9:.4g} GB/s"
    )
    parts = comments([first])
    parts += remarks(Remark("not-known", f"LogGP: not known: {text}", needed=True) for text in loggp.hidden)
    costs = loggp.costs()
    if costs is not None:
        flags = f" --overhead {_short(costs.o)}" if costs.o else ""
        star = f"star:n_hosts=2,bandwidth={costs.B:.6g}B/s,latency={_short(costs.L / 2)}"
        parts.append(Lines([f"commsim run --topology '{star}'{flags}"]))
        text = "the whole gap is assigned to o: commsim has no separate g"
        parts += remarks([Remark("gap-in-overhead", text)] if costs.o else [])
    return parts, {
        "L_plus_o": as_json(loggp.latency_and_overhead),
        "max_g_o": as_json(loggp.gap_or_overhead),
        "G": as_json(loggp.per_byte),
        "not_known": list(loggp.hidden),
    }


def as_json(estimate: FittedValue | None) -> dict[str, float] | None:
    """Return an estimate as the files have it."""
    return None if estimate is None else {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _short(seconds: float) -> str:
    """Write a time to be read back, with no more digits than a fit has."""
    return write_time(float(f"{seconds:.6g}"))


class FitConfig(WithJson):
    """All flags of ``commsim fit``."""

    file: str = flag(
        "file", metavar="MEASURED", help="table of nccl-tests, OSU, commsim, the NCCL inspector, or a profile"
    )
    operation: str | None = flag(
        choices=OPERATIONS,
        metavar="NAME",
        help="operation of the rows, if the file does not name it; if it does, only the rows of this operation",
    )
    ranks: int | None = flag(metavar="N", help="number of ranks, for files without it")
    in_place: bool = switched(help="fit the in-place times (default: out of place)")
    collective: str | None = flag(
        metavar="NAME",
        help="algorithm that ran; also fit the costs of the network, with the closed form of this algorithm",
    )
    line_rate: str | None = flag(metavar="RATE", help="rate of a rank's link, for the efficiency")
    seed: int = flag(default=0, metavar="N", help="seed of the resampling for the intervals")


def run(config: FitConfig) -> Answer:
    """Fit a line to each kind of rows."""
    check_room_for_libraries()
    from commsim.formats.measured import read_measured
    from commsim.real.comparison.alpha_beta_fit import fit_table, kinds_of

    line = parse_bandwidth(config.line_rate, "--line-rate") if config.line_rate else None
    notes: list[str] = []
    operation = config.operation or ""
    rows = read_measured(config.file, operation=operation, n_ranks=config.ranks, notes=notes, streams=True)
    kinds = kinds_of(rows, config.in_place)
    fits = [fit_table(kind, config.seed) for kind in kinds if len({row.size for row in kind}) > 1]
    single = [
        f"{kind[0].operation} {kind[0].algorithm}".strip() for kind in kinds if len({row.size for row in kind}) < 2
    ]
    notes += [f"left out: {name}: a slope needs more than one size" for name in single]
    if not fits:
        raise InputError(f"{config.file}: a fit needs at least 2 sizes of one operation")
    table = Table(COLUMNS, [_cells(fit) for fit in fits], f"t = a + S b, fitted to {config.file}", LEAST)
    parts = [
        *remarks(as_remarks(notes, "read")),
        table,
        *remarks(remark for fit in fits for remark in _remarks_of_fit(fit, line)),
    ]
    more: dict[str, Any] = {}
    if config.collective is not None:
        shown, more["network"] = network_of(config.collective, fits)
        parts += shown
    if any(row.operation == "send_recv" for row in rows):
        shown, more["loggp"] = loggp_of(rows, config.seed)
        parts += shown
    return Answer(parts, [_row(fit, line) for fit in fits], more=more)


def _cells(fit: Fit) -> list[str]:
    a, b, busbw = fit.startup, fit.per_byte, fit.busbw
    return [
        fit.operation,
        fit.algorithm or "-",
        str(fit.n_ranks or "-"),
        str(fit.n_rows),
        format_time(a.value),
        f"{format_time(a.low)}..{format_time(a.high)}",
        f"{1 / b.value / 1e9:.4g} GB/s",
        f"{1 / b.high / 1e9:.4g}..{1 / b.low / 1e9:.4g}",
        f"{busbw.value / 1e9:.4g} GB/s" if busbw is not None else "-",
        format_size(fit.half_size),
        f"{fit.median_residual:.1%}",
    ]


def _remarks_of_fit(fit: Fit, line: float | None) -> Iterator[Remark]:
    """Describe what is not known, and how near to the line rate the fit comes."""
    name = f"{fit.operation} {fit.algorithm}".strip()
    yield from (Remark("not-known", f"{name}: not known: {text}", needed=True) for text in fit.hidden)
    share = fit.efficiency(line)
    if line is not None and share is not None:
        text = f"{name}: asymptotic bus bandwidth: {share:.1%} of the line rate, {format_bandwidth(line)}"
        why = "`commsim compare --line-rate ...` lists possible reasons" if share > 1.005 else ""
        yield Remark("line-rate", text, share - 1, needed=True, details=why)


def _row(fit: Fit, line: float | None) -> dict[str, Any]:
    return {
        "operation": fit.operation, "algorithm": fit.algorithm, "n_ranks": fit.n_ranks, "n_rows": fit.n_rows,
        "startup_s": as_json(fit.startup), "per_byte_s": as_json(fit.per_byte), "busbw_Bps": as_json(fit.busbw),
        "half_size_B": fit.half_size, "residuals": list(fit.residuals), "not_known": list(fit.hidden),
        "efficiency": fit.efficiency(line),
    }  # fmt: skip


COMMANDS = {"fit": Verb(FitConfig, run)}
