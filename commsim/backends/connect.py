"""From the name of a backend to its transport; each library is imported only when it is asked for."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator

from commsim.core.errors import BackendError, CommsimError, InputError

from .mpi import launched_rank
from .transport import Transport

BACKENDS = ("mpi", "gloo", "nccl")


def connect(backend: str) -> Transport:
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
    raise InputError(f"unknown backend {backend!r}; known: {', '.join(BACKENDS)}")


@contextlib.contextmanager
def session(backend: str, min_ranks: int = 1) -> Iterator[Transport]:
    """Connect, and leave in good order; an error is reported by one rank, and never leaves others waiting.

    Parameters
    ----------
    backend : str
        One of ``BACKENDS``.
    min_ranks : int
        Fewer are refused.

    Raises
    ------
    BackendError
        If there are fewer than `min_ranks`, or as in :func:`connect`; ranks other than 0 exit quietly with 2.
    """
    try:
        transport = connect(backend)
        if transport.size < min_ranks:
            raise BackendError(
                f"at least {min_ranks} ranks are needed and {transport.size} is running: "
                f"start it with mpirun -n {max(min_ranks, 2)} ..."
            )
    except CommsimError:
        if launched_rank():
            raise SystemExit(2) from None  # rank 0 says the same
        raise
    try:
        yield transport
    except CommsimError:
        # All ranks do the same on the same values, so all are here.
        transport.close()
        if transport.rank:
            raise SystemExit(2) from None
        raise
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        transport.abort()
        raise
    transport.close()
