"""What was found once and depends on nothing but its key: kept for another size, draw or question, within bounds."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

Kind = TypeVar("Kind")
__all__ = ["Cache", "once"]


class Cache(Generic[Kind]):
    """Values by key, of which the oldest go.

    Parameters
    ----------
    most : int
        How many are kept, or how many bytes.
    wanted : callable
        Whether a value is worth its memory.
    size : callable
        Bytes of a value, where `most` is in bytes.
    """

    def __init__(
        self, most: int, wanted: Callable[[Kind], bool] = lambda _: True, size: Callable[[Kind], int] = lambda _: 1
    ) -> None:
        self.most, self.wanted, self.size = most, wanted, size
        self._found: OrderedDict[Hashable, Kind] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: Hashable, find: Callable[[], Kind]) -> Kind:
        """Return the value of a key; one that is not known is found."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        value = find()  # without the lock: two threads may find the same
        if self.wanted(value):
            with self._lock:
                self._found[key] = value
                total = sum(map(self.size, self._found.values()))
                while total > self.most:
                    total -= self.size(self._found.popitem(last=False)[1])
        return value

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._found.clear()


def once(facts: dict[Hashable, Any], key: Hashable, find: Callable[[], Kind]) -> Kind:
    """Return a fact of one object, which is found when it is first asked for.

    Parameters
    ----------
    facts : dict
        What was found, which goes with the object, and can be pickled with it.
    key : hashable
        Name of the fact.
    find : callable
        Function that finds it.
    """
    if key not in facts:
        facts[key] = find()
    found: Kind = facts[key]
    return found
