"""``commsim explain``: NCCL's own table for a network, what it chooses at which size, and why.

What ``commsim explain`` prints of one operation: NCCL's table, what it takes at which size, and why.

``commsim explain --from``: the fastest algorithms of results as rules for NCCL's tuner plugin.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import format_size, parse_bandwidth, parse_nccl_size, parse_time
from commsim.report.table import print_remarks, print_table, write_results

from .flags.outputs import check_written

if TYPE_CHECKING:
    from commsim.formats.nccl_plans import Rule
    from commsim.nccl.choice import Cell, Range
    from commsim.nccl.search import Setting


def explain_operation(
    setting: Setting, operation: str, largest: int, sizes: Sequence[int]
) -> tuple[dict[str, Any], list[Rule]]:
    """Print the table and the choices of one operation.

    Parameters
    ----------
    setting : Setting
        Where.
    operation : str
        One that NCCL has a model of.
    largest : int, bytes
        Up to where choices are printed.
    sizes : sequence of int, bytes
        At which the times of all cells are printed too.

    Returns
    -------
    dict, list of Rule
        The JSON row, and the choices as rules for the tuner plugin.
    """
    from commsim.formats.nccl_plans import Rule
    from commsim.nccl.choice import cell_time, cells, ranges
    from commsim.nccl.search import PROTOCOLS

    table = cells(setting, operation)
    print()
    _print_cells(operation, table, PROTOCOLS)
    found = ranges(setting, operation, largest, table)
    rows = [[_interval(r), r.cell.name, r.why] for r in found]
    print_table(["sizes", "NCCL takes", "why"], rows, f"{operation}: choices up to {format_size(largest)}")
    at = {}
    for size in sizes:
        times = sorted((t, cell.name) for cell in table if (t := cell_time(setting, operation, cell, size)) is not None)
        at[size] = {name: time for time, name in times}
        print(f"# {operation} {size} B: " + ", ".join(f"{name} {time * 1e6:.1f} us" for time, name in times))
    rules = [
        Rule(operation, 0 if r.low == 1 else r.low, r.high, r.cell.algorithm, r.cell.protocol,
             n_nodes=setting.n_nodes, n_ranks=setting.n_ranks)
        for r in found
    ]  # fmt: skip
    row = {
        "operation": operation,
        "cells": [{"algorithm": c.algorithm, "protocol": c.protocol, "latency_s": c.latency,
                   "bandwidth_Bps": c.bandwidth, "why_not": c.why_not} for c in table],
        "choices": [{"low_B": r.low, "high_B": r.high, "algorithm": r.cell.algorithm, "protocol": r.cell.protocol,
                     "why": r.why} for r in found],
        "at_size": [{"size_B": size, "time_s": times} for size, times in at.items()],
    }  # fmt: skip
    return row, rules


def _print_cells(operation: str, table: Sequence[Cell], protocols: Sequence[str]) -> None:
    """Print latency and bandwidth of every cell, as NCCL does with NCCL_DEBUG_SUBSYS=TUNING; say why some are empty."""
    by_name = {(cell.algorithm, cell.protocol): cell for cell in table}
    algorithms = dict.fromkeys(cell.algorithm for cell in table)
    rows: list[list[str]] = []
    empty: list[tuple[str, str]] = []
    for algorithm in algorithms:
        mine = [by_name[algorithm, protocol] for protocol in protocols]
        if any(cell.bandwidth for cell in mine):
            rows.append([algorithm, *map(_latency_and_rate, mine)])
            unused = [cell for cell in mine if not cell.bandwidth and "Simple" not in cell.why_not]
            empty += [(cell.why_not, cell.name) for cell in unused]
        else:
            empty.append((mine[-1].why_not, algorithm))
    print_table(["algorithm", *protocols], rows, f"{operation}: latency (us) / bandwidth (GB/s) of the algorithm")
    for why in dict.fromkeys(why for why, _ in empty):
        print(f"# not used: {', '.join(name for reason, name in empty if reason == why)}: {why}")


def _latency_and_rate(cell: Cell) -> str:
    return f"{cell.latency * 1e6:.1f}/{cell.bandwidth / 1e9:.1f}" if cell.bandwidth else "-"


def _interval(found: Range) -> str:
    return f"{found.low}..{found.high} ({format_size(found.low)} to {format_size(found.high)})"


_OPERATIONS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("--topology", metavar="NAME:key=value,...|FILE", help="network, such as dgx-h100@star:n_hosts=16")
    add("--ranks", type=int, metavar="N", help="ranks (all endpoints)")
    add("--placement", default="packed", help="packed, spread, random or a file (packed)")
    add("--seed", type=int, default=0, help="of random placement (0)")
    add(
        "--operation",
        action="append",
        choices=_OPERATIONS,
        metavar="NAME",
        help=f"{', '.join(_OPERATIONS)}; repeat (all)",
    )
    add(
        "--size",
        action="append",
        metavar="SIZE",
        help="say what is chosen at this size, and what all others take; repeat",
    )
    add("-e", "--maxbytes", default="8G", metavar="SIZE", help="largest size (8G)")
    add(
        "--gpu",
        choices=("volta", "ampere", "hopper", "blackwell"),
        help="generation, where the network does not say it",
    )
    add("--cpu", choices=("intel", "amd", "other"), help="vendor, where the network does not say it")
    add("--graph", metavar="FILE.xml", help="channels as NCCL found them: NCCL_GRAPH_DUMP_FILE")
    add("--channels", metavar="N:RATE", help="of rings and trees, after doubling, such as 12:30GB/s")
    add("--nvls", metavar="N:RATE|none", help="channels of NVLink SHARP")
    add("--nic", metavar="RATE", help="that NCCL takes a NIC to have, such as 400Gbps")
    paths = ("PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
    add("--net-type", choices=paths, help="path from a GPU to its NIC, the shortest first")
    add("--net-latency", metavar="TIME", help="of the network plugin")
    add("--collnet", action="store_true", help="the network reduces (SHARP), and its plugin is enabled")
    add(
        "--from", dest="rows", metavar="FILE", help="write rules from results (run --json, a sweep, nccl-tests) instead"
    )
    add("--nodes", type=int, default=-1, metavar="N", help="with --from: nodes that the rules are for (any)")
    add("--tuner-csv", metavar="FILE", help="write the choices as rules for NCCL's tuner plugin")
    add("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Print NCCL's model, or write rules from results."""
    if (args.rows is None) == (args.topology is None):
        raise InputError("give --topology for NCCL's own choices, or --from FILE for rules from results")
    check_written([args.json, args.tuner_csv], [args.rows, args.graph, args.topology])
    if args.rows is not None:
        return rules_from_results(args)
    if args.nodes != -1:
        raise InputError("--nodes is for --from; with --topology they follow from --ranks and --placement")
    setting = _setting(args)
    largest = parse_nccl_size(args.maxbytes, "-e")
    sizes = [parse_nccl_size(text, "--size") for text in args.size or ()]
    print_remarks(f"assumed: {line}" for line in setting.assumed)
    print(f"# {setting.n_ranks} ranks on {setting.n_nodes} nodes, {setting.gpu} GPUs, {setting.cpu} CPUs; NCCL 2.30")
    found = [explain_operation(setting, operation, largest, sizes) for operation in args.operation or _OPERATIONS]
    if args.tuner_csv:
        from commsim.formats.nccl_plans import write_tuner

        rules = [rule for _, of_operation in found for rule in of_operation]
        write_tuner(args.tuner_csv, rules, f"NCCL 2.30's own choices on {args.topology}, by commsim explain")
        print(f"{args.tuner_csv}: written, {len(rules)} rules")
    if args.json:
        config = {k: v for k, v in vars(args).items() if k != "json"}
        write_results(args.json, config, [row for row, _ in found], assumed=list(setting.assumed))
    return 0


def _setting(args: argparse.Namespace) -> Setting:
    from commsim.nccl.of_network import Given, setting_of
    from commsim.run.inputs import load_network, load_placement

    network = load_network(args.topology)
    n_ranks = len(network.endpoints) if args.ranks is None else args.ranks
    if n_ranks < 2:
        raise InputError(f"NCCL chooses nothing for fewer than 2 ranks, got {n_ranks}")
    placement = load_placement(args.placement, network, n_ranks, args.seed)
    given = Given(
        gpu=args.gpu,
        cpu=args.cpu,
        channels=_pair(args.channels, "--channels"),
        nvls=(0, 0.0) if args.nvls == "none" else _pair(args.nvls, "--nvls"),
        nic=parse_bandwidth(args.nic, "--nic") if args.nic else None,
        path_inter=args.net_type,
        net_latency=parse_time(args.net_latency, "--net-latency") if args.net_latency else None,
        collnet=args.collnet,
    )
    if args.graph is None:
        return setting_of(network, placement, n_ranks, given)
    import dataclasses

    from commsim.formats.nccl_plans import read_nccl_graphs

    if args.channels is not None:
        raise InputError("--graph says which channels there are; --channels would contradict it")
    gpu = args.gpu or setting_of(network, placement, n_ranks, given).gpu
    by_pattern = read_nccl_graphs(args.graph, gpu)
    return setting_of(network, placement, n_ranks, dataclasses.replace(given, by_pattern=by_pattern))


def _pair(text: str | None, name: str) -> tuple[int, float] | None:
    """Read ``12:30GB/s``."""
    if text is None:
        return None
    count, colon, rate = text.partition(":")
    if not colon or not count.isdecimal() or len(count) > 4 or not int(count):
        raise InputError(f"{name} must be a number of channels and the rate of each, such as 12:30GB/s, got {text!r}")
    return int(count), parse_bandwidth(rate, name)


def rules_from_results(args: argparse.Namespace) -> int:
    """Print and write the rules.

    Raises
    ------
    InputError
        If a flag is missing or wrong, or no result is of an algorithm that NCCL knows.
    """
    from commsim.formats.measured import read_measured
    from commsim.formats.nccl_plans import rules_of_rows, write_tuner

    if args.tuner_csv is None:
        raise InputError("--from FILE makes rules; say where to, with --tuner-csv FILE")
    if args.nodes != -1 and not 1 <= args.nodes < 2**31:
        raise InputError(f"--nodes must be a number of nodes, or -1 for any, got {args.nodes}")
    notes: list[str] = []
    wanted = args.operation or [""]
    rows = [row for name in wanted for row in read_measured(args.rows, operation=name, n_ranks=args.ranks, notes=notes)]
    rules = rules_of_rows(rows, args.nodes, notes)
    print_remarks(dict.fromkeys(notes))
    table = [[r.operation, str(r.low), str(r.high), r.algorithm, r.protocol, str(r.n_ranks)] for r in rules]
    print_table(
        ["operation", "from(B)", "to(B)", "algorithm", "protocol", "ranks"], table, f"the fastest of {args.rows}"
    )
    write_tuner(args.tuner_csv, rules, f"the fastest in {args.rows}, by commsim explain")
    print(f"{args.tuner_csv}: written, {len(rules)} rules")
    return 0
