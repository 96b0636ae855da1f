"""The one error family, all derived from :class:`CommsimError`, and text from outside as its messages print it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class CommsimError(Exception):
    """Base of all errors that a user can cause; the command line prints it on one line and exits with 2."""


class InputError(CommsimError, ValueError):
    """A value from outside is wrong: the message names it, and what would be right."""


class ScheduleError(InputError):
    """A schedule is malformed, or does not meet the postcondition of its operation."""


class RoutingError(InputError):
    """Two participants that must talk have no path between them."""


class BackendError(CommsimError, RuntimeError):
    """A real backend (MPI, torch.distributed) is missing or failed."""


class PhysicsError(CommsimError, RuntimeError):
    """A simulated result contradicts capacity or causality: a bug of commsim, never the user's fault."""


@contextlib.contextmanager
def located(where: object) -> Iterator[None]:
    """Put a file, and perhaps its line or field, before the message of an error that does not begin with it."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(str(where)):
            raise
        raise InputError(f"{where}: {error}") from None


def printable(text: str) -> str:
    r"""Write what is not printable as the escape that Python has for it: control characters, directions, line ends.

    Examples
    --------
    >>> printable("ring\x1b[31m")
    'ring\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
