"""``commsim nccl``: NCCL's cost table for a network, its choices by size; rules for its tuner plugin."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from commsim.cli.flags import Verb
from commsim.cli.flags.faults import with_faults
from commsim.core.errors import InputError
from commsim.core.machines.hardware import guesses_of
from commsim.core.remark import ASSUMED, Remark
from commsim.core.units import count_text, format_size, parse_nccl_size, parse_nccl_sizes
from commsim.report.answer import Answer, Lines, comments, remarks

from .nccl_flags import OPERATIONS, NcclConfig
from .operation_rows import NcclQuestion, explain_operation, tables_of

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
