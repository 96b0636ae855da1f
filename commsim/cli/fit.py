"""``commsim fit MEASURED``: start-up time, bandwidth and efficiency out of measurements, and how sure they are."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.core.units import format_bandwidth, format_size, format_time, parse_bandwidth

from .fit_network import as_json, print_loggp, print_network
from .table import print_remarks, print_table, write_results
from .written_files import check_written

if TYPE_CHECKING:
    from commsim.comparison.hockney import Fit
    from commsim.formats.measured import Measured

COLUMNS = ["operation", "algorithm", "ranks", "rows", "a: start-up", "(95 %)", "1/b: S per s", "(95 %)", "busbw",
           "half at", "residual"]  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("file", metavar="MEASURED", help="table of nccl-tests, OSU, commsim, the NCCL inspector, or a profile")
    add("--operation", choices=OPERATIONS, metavar="NAME", help="of a file that does not say it; else only its rows")
    add("--ranks", type=int, metavar="N", help="of a file that does not say it")
    add("--in-place", action="store_true", help="fit times in place (out of place)")
    add("--collective", metavar="NAME", help="the algorithm that ran: by its closed form, what the network must have")
    add("--line-rate", metavar="RATE", help="of a rank's link, for the efficiency")
    add("--seed", type=int, default=0, metavar="N", help="of the draws for the intervals (0)")
    add("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Fit and print."""
    from commsim.comparison.hockney import fit_table
    from commsim.formats.read_measured import read_measured

    check_written([args.json], [args.file])
    line = parse_bandwidth(args.line_rate, "--line-rate") if args.line_rate else None
    notes: list[str] = []
    rows = read_measured(args.file, operation=args.operation or "", n_ranks=args.ranks, notes=notes)
    print_remarks(notes)
    kinds = _kinds(rows, args.in_place)
    fits = [fit_table(kind, args.seed) for kind in kinds if len({row.size for row in kind}) > 1]
    single = [
        f"{kind[0].operation} {kind[0].algorithm}".strip() for kind in kinds if len({row.size for row in kind}) < 2
    ]
    print_remarks(f"left out: {name}: one size says nothing about a slope" for name in single)
    if not fits:
        raise InputError(f"{args.file}: a fit needs at least 2 sizes of one operation")
    print_table(COLUMNS, [_cells(fit) for fit in fits], f"t = a + S b, fitted to {args.file}")
    for fit in fits:
        _say(fit, line)
    result = [_row(fit, line) for fit in fits]
    more: dict[str, Any] = {}
    if args.collective is not None:
        more["network"] = print_network(args.collective, fits)
    if any(row.operation == "send_recv" for row in rows):
        more["loggp"] = print_loggp(rows, args.seed)
    if args.json:
        config = {k: v for k, v in vars(args).items() if k != "json"}
        write_results(args.json, config, result, **more)
    return 0


def _kinds(rows: Sequence[Measured], in_place: bool) -> list[list[Measured]]:
    """Group rows that one line can go through."""
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
        print_remarks([f"{name}: endless messages reach {share:.1%} of the line rate, {format_bandwidth(line)}"])
        if share > 1.005:
            print("#   that is above it: `commsim compare --line-rate ...` says what can be the reason")


def _row(fit: Fit, line: float | None) -> dict[str, Any]:
    return {
        "operation": fit.operation, "algorithm": fit.algorithm, "n_ranks": fit.n_ranks, "n_rows": fit.n_rows,
        "startup_s": as_json(fit.startup), "per_byte_s": as_json(fit.per_byte), "busbw_Bps": as_json(fit.busbw),
        "half_size_B": fit.half_size, "residuals": list(fit.residuals), "not_known": list(fit.hidden),
        "efficiency": fit.busbw.value / line if line is not None and fit.busbw is not None else None,
    }  # fmt: skip
