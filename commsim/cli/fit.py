"""``commsim fit MEASURED``: start-up time, bandwidth and efficiency of measurements, with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.core.units import format_bandwidth, format_size, format_time, parse_bandwidth, write_time
from commsim.report.table import print_remarks, print_table

from .flags import Verb, WithJson, flag, switched
from .flags.outputs import check_written

if TYPE_CHECKING:
    from commsim.comparison.hockney import Fit
    from commsim.comparison.sampling import Estimate
    from commsim.formats.measured import Measured


def print_network(collective: str, fits: Sequence[Fit]) -> dict[str, Any]:
    """Print the network that the fit of the algorithm asks for, as flags of ``commsim run``."""
    from collectives import COLLECTIVES
    from commsim.comparison.hockney import network_costs

    operation = COLLECTIVES[collective].metadata["operation"] if collective in COLLECTIVES else ""
    chosen = [fit for fit in fits if fit.operation == operation]
    if len(chosen) != 1:
        raise InputError(f"--collective {collective}: {len(chosen)} of the fits are of it; choose one with --operation")
    middle, fastest, slowest = network_costs(chosen[0], collective)
    spec = f"star:n_hosts={chosen[0].n_ranks},bandwidth={middle.B:.6g}B/s,latency={_short(middle.L / 2)}"
    print(f"# {collective} on {chosen[0].n_ranks} ranks: L + o = {format_time(middle.L)} a message "
          f"({format_time(fastest.L)}..{format_time(slowest.L)}), B = {format_bandwidth(middle.B)} "
          f"({slowest.B / 1e9:.4g}..{fastest.B / 1e9:.4g} GB/s, reducing included); L and o come as a sum")  # fmt: skip
    print(f"commsim run --collective {collective} --topology '{spec}'")
    return {"collective": collective, "alpha_s": middle.L, "bandwidth_Bps": middle.B, "topology": spec}


def print_loggp(rows: Sequence[Measured], seed: int) -> dict[str, Any]:
    """Print what is known of LogGP's numbers, and the flags of ``commsim run`` that stand for them."""
    from commsim.comparison.hockney import fit_loggp

    loggp = fit_loggp(rows, seed)
    parts = [
        f"{name} = {format_time(value.value)} ({format_time(value.low)}..{format_time(value.high)})"
        for name, value in (("L + o", loggp.latency_and_overhead), ("max(g, o)", loggp.gap_or_overhead))
        if value is not None
    ]
    print(
        f"# LogGP: {', '.join(parts)}, G = {loggp.per_byte.value * 1e9:.4g} ns/B, "
        f"which is {1 / loggp.per_byte.value / 1e9:.4g} GB/s"
    )
    for text in loggp.hidden:
        print(f"# LogGP: not known: {text}")
    if loggp.latency_and_overhead is not None:
        overhead = min(loggp.gap_or_overhead.value if loggp.gap_or_overhead else 0.0, loggp.latency_and_overhead.value)
        latency = (loggp.latency_and_overhead.value - overhead) / 2
        flags = f" --overhead {_short(overhead)}" if overhead else ""
        print(f"commsim run --topology 'star:n_hosts=2,bandwidth={1 / loggp.per_byte.value:.6g}B/s,"
              f"latency={_short(latency)}'{flags}")  # fmt: skip
        if overhead:
            print("# the whole gap is assigned to o: commsim has no separate g")
    return {
        "L_plus_o": as_json(loggp.latency_and_overhead),
        "max_g_o": as_json(loggp.gap_or_overhead),
        "G": as_json(loggp.per_byte),
        "not_known": list(loggp.hidden),
    }


def as_json(estimate: Estimate | None) -> dict[str, float] | None:
    """Return an estimate as the files have it."""
    return None if estimate is None else {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _short(seconds: float) -> str:
    """Write a time to be read back, with no more digits than a fit has."""
    return write_time(float(f"{seconds:.6g}"))


COLUMNS = ["operation", "algorithm", "ranks", "rows", "a: start-up", "(95 %)", "1/b: S per s", "(95 %)", "busbw",
           "half at", "residual"]  # fmt: skip


class Config(WithJson):
    """All flags of ``commsim fit``."""

    file: str = flag(
        "file", metavar="MEASURED", help="table of nccl-tests, OSU, commsim, the NCCL inspector, or a profile"
    )
    operation: str | None = flag(
        choices=OPERATIONS, metavar="NAME", help="operation of a file that does not name it; otherwise only its rows"
    )
    ranks: int | None = flag(metavar="N", help="number of ranks, for files without it")
    in_place: bool = switched(help="fit the in-place times (default: out of place)")
    collective: str | None = flag(
        metavar="NAME", help="algorithm that ran: from its closed form, also fit the costs of the network"
    )
    line_rate: str | None = flag(metavar="RATE", help="rate of a rank's link, for the efficiency")
    seed: int = flag(default=0, metavar="N", help="seed of the resampling for the intervals")


def run(config: Config) -> None:
    """Fit and print."""
    from commsim.comparison.hockney import fit_table
    from commsim.formats.measured import read_measured

    check_written([config.json, config.csv], [config.file])
    line = parse_bandwidth(config.line_rate, "--line-rate") if config.line_rate else None
    notes: list[str] = []
    rows = read_measured(config.file, operation=config.operation or "", n_ranks=config.ranks, notes=notes)
    print_remarks(notes)
    kinds = _kinds(rows, config.in_place)
    fits = [fit_table(kind, config.seed) for kind in kinds if len({row.size for row in kind}) > 1]
    single = [
        f"{kind[0].operation} {kind[0].algorithm}".strip() for kind in kinds if len({row.size for row in kind}) < 2
    ]
    print_remarks(f"left out: {name}: a slope needs more than one size" for name in single)
    if not fits:
        raise InputError(f"{config.file}: a fit needs at least 2 sizes of one operation")
    print_table(COLUMNS, [_cells(fit) for fit in fits], f"t = a + S b, fitted to {config.file}")
    for fit in fits:
        _say(fit, line)
    result = [_row(fit, line) for fit in fits]
    more: dict[str, Any] = {}
    if config.collective is not None:
        more["network"] = print_network(config.collective, fits)
    if any(row.operation == "send_recv" for row in rows):
        more["loggp"] = print_loggp(rows, config.seed)
    config.write_json(result, **more)


def _kinds(rows: Sequence[Measured], in_place: bool) -> list[list[Measured]]:
    """Group rows to which one line is fitted."""
    wanted = in_place or all(row.in_place for row in rows)
    groups: dict[tuple[str, str, str, int], list[Measured]] = {}
    for row in rows:
        if row.in_place == wanted and row.time > 0:
            groups.setdefault((row.operation, row.algorithm, row.protocol, row.n_ranks or 0), []).append(row)
    return list(groups.values())


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


def _say(fit: Fit, line: float | None) -> None:
    name = f"{fit.operation} {fit.algorithm}".strip()
    print_remarks(f"{name}: not known: {text}" for text in fit.hidden)
    if line is not None and fit.busbw is not None:
        share = fit.busbw.value / line
        print_remarks([f"{name}: asymptotic bus bandwidth: {share:.1%} of the line rate, {format_bandwidth(line)}"])
        if share > 1.005:
            print("#   above the line rate: `commsim compare --line-rate ...` lists possible reasons")


def _row(fit: Fit, line: float | None) -> dict[str, Any]:
    return {
        "operation": fit.operation, "algorithm": fit.algorithm, "n_ranks": fit.n_ranks, "n_rows": fit.n_rows,
        "startup_s": as_json(fit.startup), "per_byte_s": as_json(fit.per_byte), "busbw_Bps": as_json(fit.busbw),
        "half_size_B": fit.half_size, "residuals": list(fit.residuals), "not_known": list(fit.hidden),
        "efficiency": fit.busbw.value / line if line is not None and fit.busbw is not None else None,
    }  # fmt: skip


COMMANDS = {"fit": Verb(Config, run)}
