"""Which algorithm a library runs for a collective, by size and number of ranks; or the one that a user names.

References
----------
R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA 19(1), 2005:
the sizes at which MPICH changes. Open MPI 4.0, coll_tuned_decision_fixed.c: those of Open MPI's "tuned" before release
4.1; for later ones see open_mpi_rules.py. Gloo, gloo/allreduce.cc, and torch 2.13, whose process group of gloo scatters
a sum by an all-reduce of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from commsim.core.errors import InputError, unknown_name
from commsim.core.network import Network
from commsim.core.operations import OPERATIONS
from commsim.core.spec import with_parameter
from commsim.prediction.collective_names import USUAL, collective_entry, usual_collective

from .open_mpi_rules import RULES as OPEN_MPI
from .open_mpi_rules import ring_or_doubling

# Function of (size of the operation, number of ranks) to a collective.
Rule = Callable[[float, int], str]
# What gloo runs for every sum.
GLOO_RING = "gloo_ring_all_reduce"
# Library of calls that run what `commsim run` would on these machines.
USUAL_HERE, MPICH = "usual", "mpich"
__all__ = ["GLOO_RING", "LIBRARIES", "choice_of"]


def _is_power(n: int) -> bool:
    return n & (n - 1) == 0


def _mpich_all_gather(size: float, n: int) -> str:
    if size < 512 << 10 and _is_power(n):
        return "recursive_doubling_all_gather"
    return "bruck_all_gather" if size < 80 << 10 else "ring_all_gather"


def _mpich_all_to_all(size: float, n: int) -> str:
    block = size / n
    if block <= 256 and n >= 8:
        return "bruck_all_to_all"
    return "direct_all_to_all" if block <= 32 << 10 else "pairwise_all_to_all"


def _open_mpi_all_gather(size: float, n: int) -> str:
    if size < 50_000:
        return "recursive_doubling_all_gather" if _is_power(n) else "bruck_all_gather"
    return "ring_all_gather"


def _open_mpi_all_to_all(size: float, n: int) -> str:
    block = size / n
    if block < 200 and n > 12:
        return "bruck_all_to_all"
    return "direct_all_to_all" if block < 3000 else "pairwise_all_to_all"


def _always(name: str) -> Rule:
    return lambda size, n: name  # noqa: ARG005


_COMMON: dict[str, Rule] = {
    "barrier": _always("dissemination_barrier"),
    "broadcast": _always("binomial_broadcast"),
    "reduce": _always("binomial_reduce"),
    "gather": _always("direct_gather"),
    "scatter": _always("direct_scatter"),
    "reduce_scatter": _always("ring_reduce_scatter"),
    "all_gather_v": _always("ring_all_gather_v"),
    "all_to_all_v": _always("direct_all_to_all_v"),
}
LIBRARIES: Mapping[str, Mapping[str, Rule]] = {
    "mpich": _COMMON
    | {
        "all_gather": _mpich_all_gather,
        "all_to_all": _mpich_all_to_all,
        "all_reduce": lambda size, n: (  # noqa: ARG005
            "recursive_doubling_all_reduce" if size <= 2048 else "halving_doubling_all_reduce"
        ),
    },
    "open-mpi": {**_COMMON, **OPEN_MPI},
    "open-mpi-4.0": _COMMON
    | {
        "all_gather": _open_mpi_all_gather,
        "all_to_all": _open_mpi_all_to_all,
        "all_reduce": lambda size, n: ring_or_doubling(
            "recursive_doubling_all_reduce" if size < 10_000 else "ring_all_reduce", size, n
        ),
    },
    "gloo": _COMMON
    | {
        "all_gather": _always("ring_all_gather"),
        "all_to_all": _always("direct_all_to_all"),
        "all_reduce": _always(GLOO_RING),
        "reduce_scatter": _always(GLOO_RING),
    },
}


def choice_of(
    library: str | None, algorithms: Sequence[str], network: Network | None = None
) -> Callable[[str, float, int, int, str], str]:
    """Return the function from (operation, size, number of ranks, root, library asked for) to a collective.

    Parameters
    ----------
    library : str or None
        One of ``LIBRARIES``. None is MPICH, except for calls of the library ``usual``.
    algorithms : sequence of str
        ``OPERATION=NAME[:key=value,...]``, in place of the library's.
    network : Network, optional
        Network whose machines decide what calls of the library ``usual`` run, where no library is named.

    Raises
    ------
    InputError
        If a library, an operation or a collective is unknown, or one does not do the other.
    """
    of_usual: Collection[str] = USUAL if library is None and network is not None else ()
    library = library or MPICH
    if library not in LIBRARIES:
        raise unknown_name("library", library, LIBRARIES)
    own: dict[str, str] = {}
    for text in algorithms:
        operation, equals, spec = text.partition("=")
        if not equals or not spec or operation not in OPERATIONS:
            raise InputError(
                f"--algorithm must be OPERATION=NAME, such as all_reduce=ring_all_reduce, got {text!r}; "
                f"operations: {', '.join(OPERATIONS)}"
            )
        entry, _ = collective_entry(spec)
        if entry.metadata["operation"] != operation:
            raise InputError(
                f"--algorithm {text}: {entry.name} is of {entry.metadata['operation']}, not of {operation}"
            )
        own[operation] = spec
    rules = LIBRARIES[library]

    def choose(operation: str, size: float, n_ranks: int, root: int, asked: str) -> str:
        if operation in own:
            spec = own[operation]
        elif asked == USUAL_HERE and network is not None and operation in of_usual:
            spec = usual_collective(network, operation, textbook=root > 0)[0]
        elif operation in rules:
            spec = rules[operation](size, n_ranks)
        else:
            raise InputError(f"{library} has no rule for {operation}; give --algorithm {operation}=NAME")
        if not root or not OPERATIONS[operation].has_root or "root=" in spec:
            return spec
        return with_parameter(spec, f"root={root}")

    return choose
