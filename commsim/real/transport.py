"""What a library must offer so that schedules can be executed over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

# A NumPy array, or a torch tensor: what can be sliced, assigned to and added in place.
Array = Any


@dataclass(frozen=True, slots=True)
class Native:
    """The library's own collective, bound to its memory.

    Parameters
    ----------
    run : callable
        Does it once.
    reset : callable
        Puts the input back.
    result : Array
        Memory of this rank's part of the result afterwards.
    """

    run: Callable[[], None]
    reset: Callable[[], None]
    result: Array


class RankTransport(Protocol):
    """One rank's way to the others; every call but `isend`, `irecv` and `wait` is made by all ranks together.

    Attributes
    ----------
    name : str
        The backend, as the user names it.
    library : str
        Name and version of what carries messages; empty where there is no library.
    rank, size : int
        This process, and how many there are.
    look_ahead : int
        How many transfers ahead of its turn a receive may be posted.
    ranks_per_host : int
        Most ranks that share one host.
    acknowledges : bool
        Whether ranks that pass a fence first hear from their receivers that all has arrived.
    wait_some : callable or None
        Function of a list of handles that returns when some are complete, with their places in the list. None where the
        library can only wait for a given message; messages then begin in the order of the program.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def library(self) -> str: ...  # noqa: D102
    @property
    def rank(self) -> int: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def look_ahead(self) -> int: ...  # noqa: D102
    @property
    def acknowledges(self) -> bool: ...  # noqa: D102
    @property
    def ranks_per_host(self) -> int: ...  # noqa: D102
    @property
    def wait_some(self) -> Callable[[list[Any]], Sequence[int]] | None: ...  # noqa: D102

    def empty(self, n_elements: int, dtype: str) -> Array:
        """Memory that can be sent from and received into."""

    def load(self, target: Array, values: NDArray[Any]) -> None:
        """Copy NumPy values into the transport's memory."""

    def values(self, array: Array) -> NDArray[Any]:
        """Return the contents of the transport's memory as NumPy values."""

    def isend(self, array: Array, peer: int, tag: int) -> Any:
        """Start to send; the array must not change before `wait`."""

    def irecv(self, array: Array, peer: int, tag: int) -> Any:
        """Start to receive; receives of one peer and tag are matched in the order in which they are posted."""

    def wait(self, handle: Any) -> None:
        """Return when the send or receive is complete."""

    def synchronize(self) -> None:
        """Return when all that this rank has started on a device is done."""

    def barrier(self) -> None:
        """Return when every rank has called it."""

    def max_over_ranks(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Largest value of any rank, element by element."""

    def native(self, operation: str, n_elements: int, root: int, dtype: str, source: NDArray[Any]) -> Native:
        """Bind the library's own collective to memory that holds `source`; see :class:`Native`.

        Parameters
        ----------
        operation : str
            Name of the operation.
        n_elements, root : int
            Elements of the whole array, and the root of a rooted operation.
        dtype : str
            Type of an element.
        source : array
            This rank's input.

        Raises
        ------
        BackendError
            If the library has none.
        """

    def abort(self) -> None:
        """End all ranks at once, because this one cannot go on."""

    def close(self) -> None:
        """Leave; the last call."""
