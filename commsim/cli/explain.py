"""``commsim explain``: NCCL's own table for a network, what it chooses at which size, and why."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.core.units import parse_bandwidth, parse_nccl_size, parse_time

from .explain_operation import explain_operation
from .table import print_remarks, write_results
from .written_files import check_written

if TYPE_CHECKING:
    from commsim.nccl.setting import Setting

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
        from .explain_results import rules_from_results

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
        from commsim.formats.nccl_tuner import write_tuner

        rules = [rule for _, of_operation in found for rule in of_operation]
        write_tuner(args.tuner_csv, rules, f"NCCL 2.30's own choices on {args.topology}, by commsim explain")
        print(f"{args.tuner_csv}: written, {len(rules)} rules")
    if args.json:
        config = {k: v for k, v in vars(args).items() if k != "json"}
        write_results(args.json, config, [row for row, _ in found], assumed=list(setting.assumed))
    return 0


def _setting(args: argparse.Namespace) -> Setting:
    from commsim.inputs import load_network, load_placement
    from commsim.nccl.of_network import Given, setting_of

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

    from commsim.formats.nccl_graphs import read_nccl_graphs

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
