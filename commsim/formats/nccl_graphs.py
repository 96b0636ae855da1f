"""The channels that NCCL's search really found, from the file that it dumps (``NCCL_GRAPH_DUMP_FILE``).

References
----------
NCCL 2.30, ``src/graph/search.cc``: ``<graphs version="1"><graph id pattern nchannels speedintra speedinter ...>``.
Rates are GB/s (1e9) of a channel, latencies microseconds; the dump is from before channels are doubled.
"""

from __future__ import annotations

import re
from pathlib import Path

from commsim.files.xml_tree import Element, read_xml
from commsim.nccl.search import PATHS, Channels, doubled

_PATTERNS = {"1": "tree", "2": "tree", "3": "tree", "4": "ring", "5": "nvls", "6": "collnet"}
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,12})?", re.ASCII)


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
    found = {}
    for graph in top.all("graph"):
        pattern = _PATTERNS.get(graph.text("pattern").strip())
        if pattern is None:
            graph.fail(f"has the pattern {graph.text('pattern')!r}; known: {', '.join(_PATTERNS)}")
        n = graph.whole("nchannels")
        if n:
            found[pattern] = _channels(graph, gpu, n, pattern)
    if "ring" not in found:
        top.fail("has no ring (pattern 4)")
    return found


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
