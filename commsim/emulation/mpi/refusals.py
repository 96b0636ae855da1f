"""Names of mpi4py that are not there: refused with their class and name, on the class and on what is made of it."""

from __future__ import annotations

from typing import Any

__all__ = ["Refusing", "refusal"]


def refusal(name: str, of: str, why: str = "") -> AttributeError:
    """Return the error for a name that a class has not; names with two underscores are Python's own."""
    return AttributeError(name if name.startswith("__") else f"commsim emulate has no {of}.{name}{why}")


class Refusing(type):
    """Metaclass of classes of mpi4py's: what they have not is refused by name."""

    WHY = ""

    def __new__(cls, name: str, bases: tuple[type, ...], own: dict[str, Any]) -> Refusing:
        """Make the class, whose instances refuse as it does."""

        def refused(self: Any, wanted: str) -> Any:
            raise refusal(wanted, type(self).__name__, type(self).WHY)

        own.setdefault("__getattr__", refused)
        return super().__new__(cls, name, bases, own)

    def __getattr__(cls, name: str) -> Any:
        """Refuse what the class has not."""
        raise refusal(name, cls.__name__, cls.WHY)
