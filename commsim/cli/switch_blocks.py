"""Which blocks the workers of `commsim switch simulate` have, when its system skips blocks of zeros."""

from __future__ import annotations

import difflib
import inspect
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError

if TYPE_CHECKING:
    from commsim.core.registry import Entry
    from commsim.core.sparse.occupancy import Occupancy
    from switch_model.system import System


def drawn(density: float = 1.0, pattern: str = "random", seed: int = 0, exponent: float = 1.0) -> dict[str, Any]:
    """Parameters of :func:`commsim.core.sparse.generate.drawn_occupancy` that may stand beside the system's own."""
    return dict(locals())


DRAWN = tuple(inspect.signature(drawn).parameters)


def split_blocks(entry: Entry[System], raw: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split what was written after a system's name into its own parameters and those of the blocks.

    Raises
    ------
    InputError
        If the system skips blocks and a parameter is neither's.
    """
    if not entry.build().hosts:
        return raw, {}
    mine = {key: text for key, text in raw.items() if key in DRAWN}
    rest = {key: text for key, text in raw.items() if key not in mine}
    for key in rest.keys() - set(entry.parameters):
        close = difflib.get_close_matches(key, (*entry.parameters, *DRAWN), n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        known = ", ".join((*entry.parameters, *DRAWN))
        raise InputError(f"{entry.name} has no parameter {key!r}; {hint}known: {known}")
    return rest, mine


def drawn_blocks(text: str, system: System, n_workers: int, n_elements: int) -> Occupancy | None:
    """Return the blocks that are not all zero at each worker; None when every block is sent.

    Parameters
    ----------
    text : str
        The system as it was written.
    system : System
        What it became.
    n_workers, n_elements : int
        Workers, and elements of the tensor.

    Raises
    ------
    InputError
        If no such blocks can be drawn.
    """
    from commsim.core.sparse.generate import drawn_occupancy
    from commsim.core.spec import read_arguments, split_spec
    from switch_model.systems import SYSTEMS

    name, raw = split_spec(text)
    mine = split_blocks(SYSTEMS[name.replace("-", "_")], raw)[1]
    if not mine:
        return None
    if "density" not in mine:
        raise InputError(f"{system.name} needs density=... to know which blocks are not zero, got {', '.join(mine)}")
    given = drawn(**read_arguments(drawn, mine))
    return drawn_occupancy(n_workers, n_elements, block=system.elements, **given)
