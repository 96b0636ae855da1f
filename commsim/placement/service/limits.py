"""Limits of requests and answers. Each is checked before the work that it bounds; docs/schedulers.md lists them."""

from __future__ import annotations

from dataclasses import dataclass

from commsim.core.errors import InputError

# Letters of a job's or a node's name, and of a text of a cluster's topology.
MAX_NAME, MAX_TEXT = 256, 4096
# Nodes for ranks of a cluster, and all nodes and directed links of its network: a machine of 8 GPUs has some 30 nodes.
MAX_NODES = 20_000
MAX_NETWORK_NODES, MAX_NETWORK_LINKS = 4 * MAX_NODES, 50 * MAX_NODES
# Where the service listens by default.
LOOPBACK = "127.0.0.1"
# Parameters of a topology.
MAX_PARAMETERS = 100
# Jobs that are known, jobs of one request, and GPUs of the jobs that a search places.
MAX_KNOWN_JOBS, MAX_JOBS, MAX_SEARCHED_GPUS = 10_000, 1000, 100_000
# Work of a search beside known jobs: GPUs to place times candidates. Of one that is as `commsim place`: jobs, with
# those that are placed, times links times candidates; simulated: jobs squared times candidates.
MAX_PLACED_WORK, MAX_WORK, MAX_SIMULATED_WORK = 1_000_000, 100_000_000, 1_000_000
MAX_GPUS_OF_POD = 99_999
# Phases of a job, and its period.
MAX_PHASES, MAX_PERIOD_MS = 64, 86_400e3
MAX_CANDIDATES, MAX_GENERATORS, MAX_SEED = 100, 20, 2**63 - 1
# Faults of a search, and letters of each.
MAX_FAULTS, MAX_FAULT = 100, 200
# Searches that wait, and the seconds for which they may.
MAX_WAITING, MAX_WAIT_S = 400, 60.0
# Moves of running jobs that are looked at, where the request names none.
MAX_MOVED = 100
# Size of the answer of a search, bytes.
MAX_ANSWER = 64 * 2**20
# Connections that are open at once, and bodies of full size that may be in memory at once.
MAX_CONNECTIONS, HELD_BODIES = 512, 8


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may do.

    Parameters
    ----------
    token : str or None
        Word that must come as ``Authorization: Bearer``; ``/healthz`` is open.
    body_bytes : int
        Size of a request's body, whether it is announced or comes in chunks.
    seconds : float
        Time for a body to arrive.
    """

    token: str | None = None
    body_bytes: int = 8 * 2**20
    seconds: float = 10.0


def require_work(n_jobs: int, n_gpus: int, n: int, *, simulated: bool, n_links: int = 0, n_moves: int = 1) -> None:
    """Refuse a search that would take minutes, or more memory than there may be.

    Parameters
    ----------
    n_jobs, n_gpus, n : int
        Jobs of the search, GPUs that are to be placed, and candidates.
    simulated : bool
        Whether each candidate is simulated.
    n_links : int
        Links of the network, where all jobs are looked at together; 0 where running jobs are kept.
    n_moves : int
        Searches of this kind in one request.

    Raises
    ------
    InputError
        With what would make it less.
    """
    if n_gpus > MAX_SEARCHED_GPUS:
        raise InputError(f"request: jobs to place are at most of {MAX_SEARCHED_GPUS} GPUs together; got {n_gpus}")
    for work, most, of in (
        (n_gpus * n, MAX_PLACED_WORK, f"{n_gpus} GPUs times {n} candidates"),
        (
            n_jobs * n_links * n * n_moves, MAX_WORK,
            f"{n_jobs} jobs with those that run, {n_links} links times {n} candidates"
            + f" of {n_moves} searches" * (n_moves > 1),
        ),
        (n_jobs**2 * n * simulated, MAX_SIMULATED_WORK, f"{n_jobs} jobs squared times {n} simulated candidates"),
    ):  # fmt: skip
        if work > most:
            raise InputError(f"request: {of} is at most {most}, got {work}: ask for fewer candidates")


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
