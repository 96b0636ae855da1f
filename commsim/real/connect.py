"""From the name of a backend to its transport; each library is imported only when it is asked for."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator

from commsim.core.errors import BackendError, CommsimError, unknown_name

from .mpi import launched_rank
from .transport import RankTransport

BACKENDS = ("mpi", "gloo", "nccl")


def connect(backend: str) -> RankTransport:
    """Join the ranks that mpirun (or torchrun) has started.

    Raises
    ------
    InputError
        If the backend is unknown.
    BackendError
        If its library is missing, or the ranks cannot meet.
    """
    if backend == "mpi":
        from .mpi import MPITransport

        return MPITransport()
    if backend in BACKENDS:
        from .torch_backend import GlooTransport, NCCLTransport

        return GlooTransport() if backend == "gloo" else NCCLTransport()
    raise unknown_name("backend", backend, BACKENDS)


@contextlib.contextmanager
def session(backend: str, min_ranks: int = 1) -> Iterator[RankTransport]:
    """Connect, and leave in good order; an unforeseen error on one rank ends all, so that none waits for ever.

    Parameters
    ----------
    backend : str
        One of ``BACKENDS``.
    min_ranks : int
        Fewer are refused.

    Raises
    ------
    BackendError
        If there are fewer than `min_ranks`, or as in :func:`connect`.
    """
    transport = connect(backend)
    try:
        if transport.size < min_ranks:
            raise BackendError(
                f"at least {min_ranks} ranks are needed and {transport.size} is running: "
                f"start it with mpirun -n {max(min_ranks, 2)} ..."
            )
        yield transport
    except CommsimError:
        transport.close()  # all ranks do the same with the same values, so all of them are here
        raise
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        transport.abort()
        raise
    transport.close()


@contextlib.contextmanager
def reported_once() -> Iterator[None]:
    """Let only rank 0 report what the user did wrong; the others, which found the same, exit quietly with 2."""
    try:
        yield
    except CommsimError:
        if launched_rank():
            raise SystemExit(2) from None
        raise
