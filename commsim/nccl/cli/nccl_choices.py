"""``commsim nccl``: NCCL's cost table for a network, its choices by size; rules for its tuner plugin."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import Verb, WithJson, flag, repeated, switched
from commsim.cli.flags.costs import TOPOLOGY, Placing
from commsim.cli.flags.faults import Faults, Hashes, with_faults
from commsim.core.errors import InputError
from commsim.core.machines.hardware import guesses_of
from commsim.core.remark import ASSUMED, Remark
from commsim.core.units import count_text, format_size, parse_nccl_size, parse_nccl_sizes
from commsim.nccl.nccl_setting import GENERATIONS
from commsim.report.answer import Answer, Lines, comments, remarks

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.nccl.nccl_setting import NcclSetting

EXAMPLES = {
    "nccl": """
        commsim nccl --topology dgx-h100
        commsim nccl dgx-h100 --machines 4 --operation all_reduce
        commsim nccl --topology dgx-h100 --operation all_reduce --size 1M
        commsim nccl --topology dgx-a100 --operation all_gather --nccl-version 2.18
        commsim nccl --topology dgx-h100 --operation all_reduce --tuner-csv tuner.csv""",
}

OPERATIONS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")


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
    stepfactor: str | None = flag("-f", metavar="N", help="as --size, for sizes from -b to -e by this factor")
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

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser) -> None:
        """Add all flags to a parser; the network may stand without ``--topology``, as for ``commsim expect``."""
        parser.add_argument("network", nargs="?", metavar=TOPOLOGY, help="the same as --topology")
        super().add_arguments(parser)

    @classmethod
    def from_args(cls, args: argparse.Namespace, code: Sequence[str] | None = None) -> Any:
        """Return the flags that were parsed.

        Raises
        ------
        InputError
            If two networks are given.
        """
        if args.network is not None and args.topology is not None:
            raise InputError(f"two networks: {args.network} and --topology {args.topology}; give one")
        args.topology = args.topology or args.network
        return super().from_args(args, code)


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

    from .operation_rows import NcclQuestion, explain_operation, tables_of

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
    since = f"from {format_size(span[0])} " if span[0] > 1 else ""
    choices = f"choices {since}up to {format_size(span[1])}"
    head = f"{release}: {choices}; {size}, {setting.gpu} GPUs, {setting.cpu} CPUs{text}"
    if sizes and why_none(setting):
        notes.append(Remark("symmetric", f"symmetric kernels: none, {why_none(setting)}"))
    operations = config.operation or OPERATIONS
    question = NcclQuestion(config, network, setting)
    explained = [explain_operation(question, operation, span, sizes) for operation in operations]
    notes += [note for one in explained for note in one.notes]
    parts = [*comments([head]), *tables_of(explained), *remarks(dict.fromkeys(notes))]
    if config.tuner_csv:
        from commsim.nccl.tuner_and_graph_files import write_tuner

        rules = [rule for one in explained for rule in one.rules]
        write_tuner(config.tuner_csv, rules, f"{release}'s own choices on {config.topology}, by commsim nccl")
        parts.append(Lines([f"{config.tuner_csv}: written, {len(rules)} rules"]))
    return Answer(parts, [one.row for one in explained], more={"assumed": [str(line) for line in setting.assumed]})


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
