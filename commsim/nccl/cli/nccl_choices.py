"""``commsim nccl``: NCCL's cost table for a network, its choices by size; rules for its tuner plugin."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from commsim.cli.flags import Verb, WithJson, flag, repeated, switched
from commsim.cli.flags.costs import TOPOLOGY, Placing
from commsim.cli.flags.faults import Faults, Hashes, with_faults
from commsim.core.errors import InputError
from commsim.core.machines.hardware import guesses_of
from commsim.core.remark import ASSUMED, Remark, as_remarks
from commsim.core.units import count_text, format_size, microseconds, parse_nccl_size, parse_nccl_sizes
from commsim.nccl.channel_search import GENERATIONS
from commsim.report.answer import Answer, Lines, Part, Table, comments, remarks

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.nccl.channel_search import NcclSetting
    from commsim.nccl.choice import Cell, SizeRange
    from commsim.nccl.tuner_rules import Rule

EXAMPLES = {
    "nccl": """
        commsim nccl --topology dgx-h100
        commsim nccl --topology dgx-h100@star:machines=4 --operation all_reduce
        commsim nccl --topology dgx-h100 --operation all_reduce --size 1M
        commsim nccl --topology dgx-a100 --operation all_gather --nccl-version 2.18
        commsim nccl --topology dgx-h100 --operation all_reduce --tuner-csv tuner.csv""",
}

# Share of an uncontended time from which it is printed beside a longer one.
SLOWED = 0.005
OPERATIONS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")


class NcclQuestion(NamedTuple):
    """Where NCCL runs, and what it takes that for.

    Parameters
    ----------
    config : NcclConfig
        Flags.
    network : Network
        Network, with its faults.
    setting : NcclSetting
        What NCCL takes it and its ranks for.
    """

    config: NcclConfig
    network: Network
    setting: NcclSetting


def explain_operation(
    question: NcclQuestion, operation: str, span: tuple[int, int], sizes: Sequence[int]
) -> tuple[list[Part], dict[str, Any], list[Rule]]:
    """Return the table and the choices of one operation.

    Parameters
    ----------
    question : NcclQuestion
        The network and its ranks, as NCCL sees them.
    operation : str
        One that NCCL has a model of.
    span : (int, int), bytes
        Smallest and largest size of which choices are given.
    sizes : sequence of int, bytes
        Sizes at which the times of all cells are given too.

    Returns
    -------
    list of Part, dict, list of Rule
        What is shown, the JSON row, and the choices as rules for the tuner plugin.
    """
    from commsim.nccl.channel_search import PROTOCOLS
    from commsim.nccl.choice import cell_time, cells, ranges
    from commsim.nccl.symmetric_kernels import kernels
    from commsim.nccl.tuner_rules import Rule

    setting = question.setting
    table = cells(setting, operation)
    smallest, largest = span
    chosen = [
        dataclasses.replace(r, low=max(r.low, smallest))
        for r in ranges(setting, operation, largest, table)
        if r.high >= smallest
    ]
    rows = [[_interval(r), r.cell.name, r.why] for r in chosen]
    since = f"from {format_size(smallest)} " if smallest > 1 else ""
    choices = Table(["sizes", "NCCL takes", "why"], rows, f"{operation}: choices {since}up to {format_size(largest)}")
    notes: list[Remark] = []
    at = {}
    for size in sizes:
        times = sorted((t, cell.name) for cell in table if (t := cell_time(setting, operation, cell, size)) is not None)
        at[size] = {name: time for time, name in times}
        listed = ", ".join(f"{name} {microseconds(time, 1)} us" for time, name in times)
        notes.append(Remark("estimates", f"{operation} {size} B, NCCL's estimates: {listed}"))
    predicted, asked, told = _rows_of(question, operation, sizes)
    notes += told
    notes += as_remarks(_symmetric(setting, operation, sizes), "symmetric")
    rules = [
        Rule(operation, 0 if r.low == 1 else r.low, r.high, r.cell.algorithm, r.cell.protocol,
             n_nodes=setting.n_nodes, n_ranks=setting.n_ranks)
        for r in chosen
    ]  # fmt: skip
    row = {
        "operation": operation,
        "cells": [{"algorithm": c.algorithm, "protocol": c.protocol, "latency_s": c.latency,
                   "bandwidth_Bps": c.bandwidth, "why_not": c.why_not} for c in table],
        "choices": [{"low_B": r.low, "high_B": r.high, "algorithm": r.cell.algorithm, "protocol": r.cell.protocol,
                     "why": r.why} for r in chosen],
        "at_size": [{"size_B": size, "time_s": times} for size, times in at.items()],
        "symmetric": [{"size_B": size, "kernels": [{"kernel": k.name, "time_s": k.time, "blocks": k.blocks}
                                                   for k in kernels(setting, operation, size)]} for size in sizes],
        "predicted": predicted,
    }  # fmt: skip
    parts = [Lines([""]), *_cells(operation, table, PROTOCOLS), choices, *comments(asked), *remarks(notes)]
    return parts, row, rules


def _cells(operation: str, table: Sequence[Cell], protocols: Sequence[str]) -> list[Part]:
    """Give latency and bandwidth of every cell, as NCCL does with NCCL_DEBUG_SUBSYS=TUNING; say why some are empty."""
    by_name = {(cell.algorithm, cell.protocol): cell for cell in table}
    algorithms = dict.fromkeys(cell.algorithm for cell in table)
    rows: list[list[str]] = []
    empty: list[tuple[str, str]] = []
    for algorithm in algorithms:
        of_algorithm = [by_name[algorithm, protocol] for protocol in protocols]
        if any(cell.bandwidth for cell in of_algorithm):
            rows.append([algorithm, *map(_latency_and_rate, of_algorithm)])
            unused = [cell for cell in of_algorithm if not cell.bandwidth and "Simple" not in cell.why_not]
            empty += [(cell.why_not, cell.name) for cell in unused]
        else:
            empty.append((of_algorithm[-1].why_not, algorithm))
    title = f"{operation}: latency (us) / bandwidth (GB/s) of the algorithm"
    notes = [
        Remark("not-used", f"not used: {', '.join(name for reason, name in empty if reason == why)}: {why}")
        for why in dict.fromkeys(why for why, _ in empty)
    ]
    return [Table(["algorithm", *protocols], rows, title), *remarks(notes)]


def _rows_of(
    question: NcclQuestion, operation: str, sizes: Sequence[int]
) -> tuple[list[dict[str, Any]], list[str], list[Remark]]:
    """Predict what NCCL chooses, as ``commsim run`` does, as rows and in words; nothing where costs are not known."""
    from commsim.nccl.choice import Cell
    from commsim.nccl.plans.plan_nccl import NcclPlan
    from commsim.prediction.bounds.limited_by import limit_of, row_of_limit, told_limits
    from commsim.prediction.read import scenario_of
    from commsim.prediction.solve import plan_of, solve
    from commsim.report.hash_columns import spread_cells

    if not sizes:
        return [], [], []
    config = question.config
    version = f":version={config.nccl_version}" if config.nccl_version else ""
    scenario = scenario_of(
        f"nccl_{operation}{version}", question.network, n_ranks=config.ranks, placement=config.placement,
        seed=config.seed, hashes=config.hashes,
    )  # fmt: skip
    plan = plan_of(scenario)
    assert isinstance(plan, NcclPlan)
    plan = plan.taken_for(question.setting)
    launch = plan.launch
    if why := launch.why_links_only(sizes[0], launch.parameters(sizes[0])):
        return [], [], [Remark("no-prediction", f"no prediction: {why}", needed=True)]
    rows, texts, notes = [], list[str](), list[Remark]()
    for size in sizes:
        try:
            result = solve(scenario, [size], plan=plan).results[0]
        except InputError as error:  # no such switch in the network, where --collnet or --nvls assume one
            notes.append(Remark("no-prediction", f"{operation} {size} B: no prediction: {error}", needed=True))
            continue
        parameters = launch.parameters(size)
        cell = Cell(parameters["algorithm"], parameters["protocol"], 0.0, 0.0)
        costs = launch.costs(size, parameters)
        low, high = result.interval or (result.time, result.time)
        alone = result.time if costs is None else costs.seconds
        limits = row_of_limit(limit_of(plan, result))
        rows.append({"size_B": size, "time_s": result.time, "low_s": low, "high_s": high, "how": cell.name,
                     "uncontended_s": alone, **result.spread_row(), **limits})  # fmt: skip
        within = f"{microseconds(low, 1)} to {microseconds(high, 1)}" if low < high else "interval unknown"
        if result.hashes is not None:
            within += f"; median of {result.hashes.n} hashes, {' to '.join(spread_cells(result))}"
        is_slowed = result.time > alone * (1 + SLOWED)
        beside = f"; {microseconds(alone, 1)} us uncontended" if is_slowed else ""
        time, limit = microseconds(result.time, 1), told_limits([limit_of(plan, result)], [size])
        texts.append(f"{operation} {size} B: {time} us ({within}), {cell.name}{beside}; {limit}")
    return rows, texts, notes + plan.remarks_of_sizes(sizes)


def _symmetric(setting: NcclSetting, operation: str, sizes: Sequence[int]) -> Iterator[str]:
    """Describe what NCCL would take, and when, if both buffers were registered as symmetric windows."""
    from commsim.nccl.symmetric_kernels import kernels, why_none

    if why_none(setting):
        return
    for size in sizes:
        symmetric = kernels(setting, operation, size)
        if symmetric:
            listed = ", ".join(f"{k.name} {microseconds(k.time, 1)} us ({k.blocks})" for k in symmetric)
            yield f"{operation} {size} B, registered as symmetric windows (blocks): {listed}"


def _latency_and_rate(cell: Cell) -> str:
    return f"{microseconds(cell.latency, 1)}/{cell.bandwidth / 1e9:.1f}" if cell.bandwidth else "-"


def _interval(choice: SizeRange) -> str:
    return f"{choice.low}..{choice.high} ({format_size(choice.low)} to {format_size(choice.high)})"


class NcclConfig(Hashes, Faults, Placing, WithJson):
    """All flags of ``commsim nccl``."""

    topology: str | None = flag(metavar=TOPOLOGY, help="network, such as dgx-h100@star:machines=2")
    nccl_version: str | None = flag(metavar="2.8..2.32", help="NCCL release whose rules are used (default: 2.32)")
    operation: tuple[str, ...] = repeated(
        choices=OPERATIONS, metavar="NAME", help=f"{', '.join(OPERATIONS)} (default: all); repeatable"
    )
    size: tuple[str, ...] = repeated(
        metavar="SIZE[,SIZE...]",
        help="also print, for these sizes, the times that commsim run predicts, and with -v NCCL's estimate for every "
        "algorithm; repeatable",
    )
    minbytes: str = flag("-b", default="1", metavar="SIZE", help="smallest size of the choices")
    maxbytes: str = flag("-e", default="8G", metavar="SIZE", help="largest size")
    stepfactor: str | None = flag("-f", metavar="N", help="also as --size: the sizes from -b to -e by this factor")
    gpu: str | None = flag(choices=GENERATIONS, help="GPU generation, if the network does not name it")
    cpu: str | None = flag(choices=("intel", "amd", "other"), help="CPU vendor, if the network does not name it")
    graph: str | None = flag(
        metavar="FILE.xml", help="file that NCCL wrote for NCCL_GRAPH_DUMP_FILE, with the channels it found"
    )
    channels: str | None = flag(
        metavar="N:RATE",
        help="number (after NCCL has doubled it) and rate of the channels of rings and trees, such as 12:30GB/s",
    )
    nvls: str | None = flag(metavar="N:RATE|none", help="number and rate of the channels of NVLink SHARP")
    nic: str | None = flag(metavar="RATE", help="rate that NCCL assumes for a NIC, such as 400Gbps")
    net_type: str | None = flag(
        choices=("PIX", "PXB", "P2C", "PXN", "PHB", "SYS"),
        help="type of path from a GPU to its NIC; the shortest is listed first",
    )
    net_latency: str | None = flag(metavar="TIME", help="latency of the network plugin")
    min_ctas: str | None = flag(metavar="N", help="least number of channels of a call (NCCL_MIN_CTAS)")
    max_ctas: str | None = flag(metavar="N", help="largest number of channels of a call (NCCL_MAX_CTAS)")
    buffer: str | None = flag(metavar="SIZE", help="buffer of a connection with Simple (NCCL_BUFFSIZE)")
    socket_threads: str | None = flag(metavar="N", help="threads of a rank over sockets (NCCL_SOCKET_NTHREADS)")
    collnet: bool = switched(help="assume that the network reduces (SHARP) and its plugin is enabled")
    rows: str | None = flag(
        "--from", metavar="FILE", help="write rules from results instead (run --json, a sweep, nccl-tests)"
    )
    nodes: int = flag(
        default=-1, metavar="N", help="with --from: number of nodes for which the rules hold (default: any)"
    )
    tuner_csv: str | None = flag(metavar="FILE", help="write the choices as rules for NCCL's tuner plugin")


def run(config: NcclConfig) -> Answer:
    """Explain NCCL's model, or write rules from results."""
    if (config.rows is None) == (config.topology is None):
        raise InputError("give --topology for NCCL's own choices, or --from FILE for rules from results")
    if config.rows is not None:
        from .tuner_rules_of_results import rules_from_results

        return rules_from_results(config)
    if config.nodes != -1:
        raise InputError("--nodes is for --from; with --topology they follow from --ranks and --placement")
    from commsim.nccl.model_versions import check_release
    from commsim.nccl.of_network import shown_by_cables, shown_by_network
    from commsim.nccl.symmetric_kernels import why_none
    from commsim.prediction.inputs import load_network

    network, notes = with_faults(load_network(config.topology or ""), config)
    setting = _setting(config, network)
    check_release(setting.gpu, setting.version)
    span = parse_nccl_size(config.minbytes, "-b"), parse_nccl_size(config.maxbytes, "-e")
    if span[0] > span[1]:
        raise InputError(f"-e must not be smaller than -b, got -b {config.minbytes} -e {config.maxbytes}")
    sizes = [parse_nccl_size(text, "--size") for texts in config.size for text in texts.split(",")]
    if config.stepfactor is not None:
        sizes += parse_nccl_sizes(config.minbytes, config.maxbytes, config.stepfactor)
    notes += [*shown_by_cables(setting), *shown_by_network(setting)]
    notes += [Remark(ASSUMED, f"assumed: {one}") for one in setting.assumed if not one.code]
    release = f"NCCL {setting.version[0]}.{setting.version[1]}"
    size = f"{count_text(setting.n_ranks, 'rank')} on {count_text(setting.n_nodes, 'node')}"
    guessed = guesses_of(network.hardware, has_fabric=setting.n_nodes > 1) if config.gpu is None else ""
    text = f" ({guessed})" if guessed else ""
    head = f"{size}, {setting.gpu} GPUs, {setting.cpu} CPUs{text}; {release}"
    if sizes and why_none(setting):
        notes.append(Remark("symmetric", f"symmetric kernels: none, {why_none(setting)}"))
    operations = config.operation or OPERATIONS
    question = NcclQuestion(config, network, setting)
    explained = [explain_operation(question, operation, span, sizes) for operation in operations]
    parts = [*comments([head]), *remarks(notes), *(part for shown, _, _ in explained for part in shown)]
    if config.tuner_csv:
        from commsim.nccl.tuner_and_graph_files import write_tuner

        rules = [rule for _, _, of_operation in explained for rule in of_operation]
        write_tuner(config.tuner_csv, rules, f"{release}'s own choices on {config.topology}, by commsim nccl")
        parts.append(Lines([f"{config.tuner_csv}: written, {len(rules)} rules"]))
    return Answer(parts, [row for _, row, _ in explained], more={"assumed": [str(line) for line in setting.assumed]})


def _setting(config: NcclConfig, network: Network) -> NcclSetting:
    """Return what NCCL takes the network for."""
    from collectives.nccl.call import NEWEST, read_version
    from commsim.nccl.of_network import NcclOptions, setting_of
    from commsim.nccl.option_words import WORDS, read_words
    from commsim.prediction.inputs import placement_of_ranks

    placement = placement_of_ranks(network, config.ranks, config.placement, config.seed or 0)
    n_ranks = len(placement.nodes)
    if n_ranks < 2:
        raise InputError(f"NCCL chooses nothing for fewer than 2 ranks, got {n_ranks}")
    words = {word: str(value) for word in WORDS if (value := getattr(config, word)) not in (None, False)}
    if config.collnet:
        words["collnet"] = "true"
    version = read_version(config.nccl_version) if config.nccl_version else NEWEST
    given = NcclOptions(version=version, **read_words(words, lambda word: f"--{word.replace('_', '-')}"))
    if config.graph is None:
        return setting_of(network, placement, n_ranks, given)
    from commsim.nccl.tuner_and_graph_files import read_nccl_graphs

    if config.channels is not None:
        raise InputError("--graph and --channels both give the channels; give one of them")
    gpu = config.gpu or setting_of(network, placement, n_ranks, given).gpu
    by_pattern = read_nccl_graphs(config.graph, gpu)
    return setting_of(network, placement, n_ranks, dataclasses.replace(given, by_pattern=by_pattern))


COMMANDS = {"nccl": Verb(NcclConfig, run)}
