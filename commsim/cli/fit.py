"""``commsim fit MEASURED``: start-up time, bandwidth and efficiency out of measurements, and how sure they are.

What a fit says of the network, as flags of ``commsim run`` that predict the measurements again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.core.units import format_bandwidth, format_size, format_time, parse_bandwidth, write_time
from commsim.report.table import print_remarks, print_table, write_results

from .flags.outputs import check_written

if TYPE_CHECKING:
    from commsim.comparison.hockney import Fit
    from commsim.comparison.sampling import Estimate
    from commsim.formats.measured import Measured


def print_network(collective: str, fits: Sequence[Fit]) -> dict[str, Any]:
    """Print the network that the fit of the algorithm asks for, as flags of ``commsim run``."""
    from collectives import COLLECTIVES
    from commsim.comparison.hockney import network_costs

    operation = COLLECTIVES[collective].facts["operation"] if collective in COLLECTIVES else ""
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

    found = fit_loggp(rows, seed)
    parts = [
        f"{name} = {format_time(value.value)} ({format_time(value.low)}..{format_time(value.high)})"
        for name, value in (("L + o", found.latency_and_overhead), ("max(g, o)", found.gap_or_overhead))
        if value is not None
    ]
    print(
        f"# LogGP: {', '.join(parts)}, G = {found.per_byte.value * 1e9:.4g} ns/B, "
        f"which is {1 / found.per_byte.value / 1e9:.4g} GB/s"
    )
    for text in found.hidden:
        print(f"# LogGP: not known: {text}")
    if found.latency_and_overhead is not None:
        overhead = min(found.gap_or_overhead.value if found.gap_or_overhead else 0.0, found.latency_and_overhead.value)
        latency = (found.latency_and_overhead.value - overhead) / 2
        flags = f" --overhead {_short(overhead)}" if overhead else ""
        print(f"commsim run --topology 'star:n_hosts=2,bandwidth={1 / found.per_byte.value:.6g}B/s,"
              f"latency={_short(latency)}'{flags}")  # fmt: skip
        if overhead:
            print("# the whole gap is taken to be o: commsim has no g of its own")
    return {
        "L_plus_o": as_json(found.latency_and_overhead),
        "max_g_o": as_json(found.gap_or_overhead),
        "G": as_json(found.per_byte),
        "not_known": list(found.hidden),
    }


def as_json(estimate: Estimate | None) -> dict[str, float] | None:
    """Return an estimate as the files have it."""
    return None if estimate is None else {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _short(seconds: float) -> str:
    """Write a time to be read back, with no more digits than a fit has."""
    return write_time(float(f"{seconds:.6g}"))


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
    from commsim.formats.measured import read_measured

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
