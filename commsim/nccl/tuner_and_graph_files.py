"""Input of NCCL and its decisions: rules for its tuner plugin, and the channels that its search found.

A line of ``NCCL_TUNER_CONFIG_FILE`` is
``collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff``; both sizes are
included, and -1 means any (of channels: NCCL's own number). The plugin reads lines of at most 255 characters.
``NCCL_GRAPH_DUMP_FILE`` is ``<graphs version="1"><graph id pattern nchannels speedintra speedinter ...>``: rates are
GB/s (1e9) of a channel, latencies microseconds; the dump is from before channels are doubled.

References
----------
NCCL 2.30, ``plugins/tuner/example`` and ``src/graph/search.cc``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_bytes, replacing
from commsim.formats.markup import Element, read_xml
from commsim.formats.measurement import Measurement
from commsim.nccl.channel_search import doubled
from commsim.nccl.nccl_setting import ALGORITHMS, PATHS, PROTOCOLS, Channels
from commsim.nccl.tuner_rules import COLLECTIVES, Rule

COLUMNS = "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff"
MAX_BYTES = 2**20
# Our collectives that do what an algorithm of NCCL does.
_OURS = {
    "ring_all_reduce": "ring", "ring_all_gather": "ring", "ring_reduce_scatter": "ring", "chain_broadcast": "ring",
    "chain_reduce": "ring", "double_tree_all_reduce": "tree", "sharp": "collnet_chain",
}  # fmt: skip
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
_PATTERNS = {"1": "tree", "2": "tree", "3": "tree", "4": "ring", "5": "nvls", "6": "collnet"}
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,12})?", re.ASCII)


def write_tuner(path: str | Path, rules: Sequence[Rule], comment: str = "") -> None:
    """Write rules; the file appears whole or not at all.

    Parameters
    ----------
    path : path
        Path of the file.
    rules : sequence of Rule
        The first that fits counts.
    comment : str
        Comment on the rules' origin, for the first line.
    """
    lines = [f"# {line[:200]}" for line in comment.splitlines()] + [f"# {COLUMNS}"]
    lines += [
        f"{COLLECTIVES[r.operation]},{r.low},{r.high},{r.algorithm},{r.protocol},{r.channels},{r.n_nodes},{r.n_ranks},-1,-1"
        for r in rules
    ]
    with replacing(path) as out:
        out.write("".join(f"{line}\n" for line in lines).encode("ascii", "replace"))


def read_tuner(path: str | Path) -> tuple[Rule, ...]:
    """Read rules, as the plugin reads them.

    Parameters
    ----------
    path : path
        ``NCCL_TUNER_CONFIG_FILE``.

    Raises
    ------
    InputError
        If the file cannot be read or a line is no rule; names the line.
    """
    ours = {name: operation for operation, name in COLLECTIVES.items()}
    rules = []
    try:
        text = read_bytes(path, MAX_BYTES).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text at byte {error.start}") from None
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or line.startswith("#") or cells[0] == "collective_type":
            continue
        numbers = [*cells[1:3], *cells[5:]]
        if not 8 <= len(cells) <= 10 or cells[0] not in ours or not all(_WHOLE.fullmatch(cell) for cell in numbers):
            raise InputError(f"{path}, line {number}: a rule is {COLUMNS}, got {line[:80]!r}")
        try:
            rules.append(Rule(ours[cells[0]], int(cells[1]), int(cells[2]), cells[3], cells[4], *map(int, cells[5:8])))
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
    return tuple(rules)


def rules_of_rows(rows: Sequence[Measurement], n_nodes: int = -1, notes: list[str] | None = None) -> tuple[Rule, ...]:
    """Turn results of several algorithms, predicted or measured, into rules: the fastest at each size.

    Parameters
    ----------
    rows : sequence of Measurement
        Results with algorithms of ours that NCCL has too, or NCCL's own.
    n_nodes : int
        Nodes that they are for; -1 for any.
    notes : list of str, optional
        Receives which algorithms NCCL does not have.

    Returns
    -------
    tuple of Rule
        From the smallest to the largest size of each operation and number of ranks; between two sizes with different
        winners the border is their geometric middle. Without a protocol in the rows it is Simple, which is what our
        schedules are closest to.

    Raises
    ------
    InputError
        If no row has an algorithm that NCCL knows.
    """
    known = [(row, _OURS.get(row.algorithm.partition(":")[0], row.algorithm.lower())) for row in rows]
    foreign = sorted(
        {row.algorithm for row, name in known if name not in ALGORITHMS or row.operation not in COLLECTIVES}
    )
    names = ", ".join(name or "rows without one" for name in foreign)
    if foreign and notes is not None:
        notes.append(f"NCCL has no algorithm for {names}: left out")
    tables: dict[tuple[str, int], dict[int, tuple[float, str, str]]] = {}
    for row, name in known:
        if name in ALGORITHMS and row.operation in COLLECTIVES and row.time > 0:
            table = tables.setdefault((row.operation, row.n_ranks or -1), {})
            candidate = (row.time, name, row.protocol.lower() if row.protocol.lower() in PROTOCOLS else "simple")
            table[int(row.size)] = min(candidate, table.get(int(row.size), candidate))
    if not tables:
        raise InputError(f"no row has an algorithm that NCCL knows, so no rule can be written; got {names}")
    return tuple(rule for (operation, n_ranks), table in sorted(tables.items())
                 for rule in _rules(operation, n_ranks, n_nodes, table))  # fmt: skip


def _rules(operation: str, n_ranks: int, n_nodes: int, table: dict[int, tuple[float, str, str]]) -> list[Rule]:
    sizes = sorted(table)
    rules: list[Rule] = []
    low = sizes[0]
    for i, size in enumerate(sizes):
        last = i == len(sizes) - 1
        if last or table[size][1:] != table[sizes[i + 1]][1:]:
            high = size if last else max(size, int((size * sizes[i + 1]) ** 0.5))
            rules.append(Rule(operation, low, high, *table[size][1:], -1, n_nodes, n_ranks))
            low = high + 1
    return rules


def read_nccl_graphs(path: str | Path, gpu: str) -> dict[str, Channels]:
    """Read the channels of each pattern.

    Parameters
    ----------
    path : path
        The dump.
    gpu : str
        Generation, which decides whether channels are doubled.

    Returns
    -------
    dict of str to Channels
        By ``ring``, ``tree``, ``nvls`` and ``collnet``, those that have channels.

    Raises
    ------
    InputError
        If the file is not well formed, or no such dump; names the line.
    """
    top = read_xml(path)
    if top.tag != "graphs":
        top.fail("is no dump of NCCL's channels: expected <graphs>")
    channels = {}
    for graph in top.all("graph"):
        pattern = _PATTERNS.get(graph.text("pattern").strip())
        if pattern is None:
            graph.fail(f"has the pattern {graph.text('pattern')!r}; known: {', '.join(_PATTERNS)}")
        n = graph.whole("nchannels")
        if n:
            channels[pattern] = _channels(graph, gpu, n, pattern)
    if "ring" not in channels:
        top.fail("has no ring (pattern 4)")
    return channels


def _channels(graph: Element, gpu: str, n: int, pattern: str) -> Channels:
    intra, inter = (_number(graph, f"speed{side}") * 1e9 for side in ("intra", "inter"))
    after, rate = (n, intra) if pattern == "nvls" else doubled(gpu, n, intra)
    paths = [graph.text(f"type{side}").strip().upper() for side in ("intra", "inter")]
    for path in paths:
        if path not in PATHS:
            graph.fail(f"has the path {path!r}; known: {', '.join(PATHS)}")
    latency = _number(graph, "latencyinter") if "latencyinter" in graph.attributes else 0.0
    same = bool(graph.whole("samechannels", 1))
    return Channels(after, rate, inter * rate / intra if intra else inter, latency * 1e-6, paths[0], paths[1], same)


def _number(graph: Element, key: str) -> float:
    text = graph.text(key).strip()
    if not _NUMBER.fullmatch(text):
        graph.fail(f"{key} must be a number of at least 0, got {text!r}")
    return float(text)
