"""Limits of requests and answers. Each is checked before the work that it bounds; docs/schedulers.md lists them."""

from __future__ import annotations

from commsim.core.errors import InputError

# Letters of a job's or a node's name, and of a text of a cluster's topology.
MAX_NAME, MAX_TEXT = 256, 4096
# Nodes for ranks of a cluster, and all nodes and directed links of its network: a machine of 8 GPUs has some 30 nodes.
MAX_NODES = 20_000
MAX_NETWORK_NODES, MAX_NETWORK_LINKS = 4 * MAX_NODES, 50 * MAX_NODES
# Parameters of a topology.
MAX_PARAMETERS = 100
# Jobs that are known, jobs of one request, and jobs and GPUs of a search with those that are placed.
MAX_KNOWN_JOBS, MAX_JOBS, MAX_SEARCHED_JOBS, MAX_SEARCHED_GPUS = 1000, 1000, 100, 100_000
MAX_GPUS_OF_POD = 99_999
# Phases of a job, and its period.
MAX_PHASES, MAX_PERIOD_MS = 64, 86_400e3
MAX_CANDIDATES, MAX_GENERATORS, MAX_SEED = 100, 20, 2**63 - 1
# Faults of a search, and letters of each.
MAX_FAULTS, MAX_FAULT = 100, 200
# Size of the answer of a search, bytes.
MAX_ANSWER = 64 * 2**20


def require_answer(tree: object) -> None:
    """Refuse to write an answer of more than ``MAX_ANSWER`` bytes.

    Raises
    ------
    InputError
        With what would make it smaller.
    """
    n_bytes, waiting = 0, [tree]
    while waiting:
        answer = waiting.pop()
        if isinstance(answer, dict):
            waiting += [*answer, *answer.values()]
        elif isinstance(answer, (list, tuple)):
            waiting += answer
        n_bytes += len(answer) + 4 if isinstance(answer, str) else 8
        if n_bytes > MAX_ANSWER:
            raise InputError(f"request: the answer is larger than {MAX_ANSWER >> 20} MiB: ask for fewer candidates")
