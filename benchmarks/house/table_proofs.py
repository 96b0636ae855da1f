"""What the table of collectives claims, proved again: the post-condition, and the time that the docstring states."""

from __future__ import annotations

from collections.abc import Callable

from collectives import COLLECTIVES
from commsim.core.checking.check import check
from commsim.core.errors import CommsimError
from commsim.core.network import Network
from commsim.prediction.build import prepare
from commsim.prediction.read import with_costs
from topologies.star import star

RANKS = range(1, 34)
TIMED_RANKS = range(1, 18)
SIZE = 3e6
TOLERANCE = 1e-9


def prove(say: Callable[[str], None]) -> None:
    """Prove every collective, and say how.

    Raises
    ------
    CommsimError
        Naming the first that is not as the table claims.
    """
    for name in COLLECTIVES:
        methods = {check(COLLECTIVES[name].build(n_ranks)).method for n_ranks in RANKS}
        if methods != {"exact"}:
            raise CommsimError(f"{name} was not checked exactly")
        worst = max(_error(name, n_ranks) for n_ranks in TIMED_RANKS)
        say(f"{name}: exact on {RANKS[0]}..{RANKS[-1]} ranks; time off by {worst:.1e} at most")


def of_chunks(name: str) -> str:
    """Name a collective as its closed form counts it: chunks without a switch system's packets, one ring of NCCL."""
    if "algorithm" in COLLECTIVES[name].parameters:
        return f"{name}:algorithm=ring,protocol=simple,channels=1"
    return f"{name}:system=none" if COLLECTIVES[name].metadata["systems"] else name


def _error(name: str, n_ranks: int) -> float:
    """Relative difference between the flow engine and the closed form; 0 between bounds, or where there is neither."""
    facts = COLLECTIVES[name].metadata
    if facts["cost"] is None and facts["bounds"] is None:  # a library's, whose time comes from its primitives
        return 0.0
    ready = prepare(of_chunks(name), _network(n_ranks), n_ranks=n_ranks)
    size = ready.sizes([SIZE])[0][0]  # an exchange of experts has its own
    time = ready.predict(size).time
    if facts["cost"] is not None:
        low = high = ready.predict(size, engine="closed-form").time
    else:
        from commsim.engine.closed_form import used_paths

        low, high = facts["bounds"](
            n_ranks, size, used_paths(ready.network, ready.paths.job).slowest, **ready.parameters
        )
    error = max(low - time, time - high, 0.0) / high if high else time
    if error > TOLERANCE:
        raise CommsimError(f"{name} on {n_ranks} ranks takes {time} s on a star, and its docstring says {low}..{high}")
    return error


def _network(n_ranks: int) -> Network:
    """Star with a host more than ranks, which a server may take."""
    return with_costs(star(n_ranks + 1), overhead=1.5e-6, gamma=2e-11)
