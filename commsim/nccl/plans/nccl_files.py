"""What decides beside the network what NCCL launches: files, and what people say in the words of ``commsim nccl``.

They are parameters of its collectives, as in ``nccl_all_reduce:graph=graph.xml,tuner=tuner.csv,nvls=none``, beside
those of the schedule. The files are the channels that NCCL dumped, and the rules that its tuner plugin was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from commsim.core.errors import InputError
from commsim.nccl.nccl_setting import Channels
from commsim.nccl.option_words import WORDS, read_words
from commsim.nccl.tuner_rules import Rule, first_rule

# Parameters that name files.
READERS = ("graph", "tuner")


@dataclass(frozen=True, slots=True)
class NcclFiles:
    """What files and the user say.

    Parameters
    ----------
    graph : str
        File of channels (``NCCL_GRAPH_DUMP_FILE``); empty for none.
    rules : tuple of Rule
        Rules of the tuner plugin (``NCCL_TUNER_CONFIG_FILE``).
    words : mapping of str to value
        Fields of :class:`commsim.nccl.of_network.NcclOptions` that the user says.
    """

    graph: str = ""
    rules: tuple[Rule, ...] = ()
    words: Mapping[str, Any] = field(default_factory=dict)

    def channels(self, gpu: str) -> dict[str, Channels] | None:
        """Return the dumped channels of each pattern; None without a file."""
        if not self.graph:
            return None
        from commsim.nccl.tuner_and_graph_files import read_nccl_graphs

        return read_nccl_graphs(self.graph, gpu)

    def rule(self, operation: str, size: int, n_nodes: int, n_ranks: int) -> dict[str, Any]:
        """Return algorithm, protocol and channels of the first rule that fits, as the plugin does; empty for none.

        Parameters
        ----------
        operation : str
            Name of the operation.
        size : int, bytes
            Size of the operation.
        n_nodes, n_ranks : int
            Number of nodes and of ranks of the communicator.
        """
        rule = first_rule(self.rules, operation, size, n_nodes, n_ranks)
        if rule is None:
            return {}
        chosen: dict[str, Any] = {"algorithm": rule.algorithm, "protocol": rule.protocol}
        return chosen | ({"channels": rule.channels} if rule.channels > 0 else {})


def split_files(raw: Mapping[str, str]) -> tuple[dict[str, str], NcclFiles]:
    """Split files and words from the parameters of a collective of NCCL that its schedule has, and read them.

    ``channels=12`` is a number of the schedule, ``channels=12:30GB/s`` what NCCL's search finds.

    Raises
    ------
    InputError
        If a file cannot be read, or is none of its kind; if a word is wrong, or two exclude each other.
    """
    words = {key: value for key, value in raw.items() if key in WORDS and (key != "channels" or ":" in value)}
    rest = {key: value for key, value in raw.items() if key not in READERS and key not in words}
    if "graph" in raw and "channels" in words:
        raise InputError("graph= and channels= both give the channels; give one of them")
    rules: tuple[Rule, ...] = ()
    if "tuner" in raw:
        from commsim.nccl.tuner_and_graph_files import read_tuner

        rules = read_tuner(raw["tuner"])
    return rest, NcclFiles(raw.get("graph", ""), rules, read_words(words, "{}=".format))
