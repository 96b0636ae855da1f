"""MPI through mpi4py: non-blocking messages on buffers, and MPI's own collectives. Nothing is pickled."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.compiling.notices import RANK_VARIABLES
from commsim.core.errors import BackendError
from commsim.core.extras import needs
from commsim.core.spec import is_whole

from .huge_pages import huge_zeros
from .transport import Native

SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS")
# ``sleep``: a rank that waits lets go of its core for a moment, as it must where ranks are more than cores.
WAIT_VARIABLE = "COMMSIM_MPI_WAIT"
PAUSE = 2e-5
# ``1``: at a fence ranks wait until their peers say that all has arrived, not only until their sends are buffered.
ACKNOWLEDGE_VARIABLE = "COMMSIM_MPI_ACKNOWLEDGE"


def launched_rank() -> int:
    """Rank of this process according to the launcher's environment, for messages before MPI is there; 0 if unknown."""
    return next((int(os.environ[v]) for v in RANK_VARIABLES if is_whole(os.environ.get(v, ""))), 0)


def launched_size() -> int:
    """Return how many processes the launcher says it has started; 1 without a launcher."""
    return next((int(os.environ[v]) for v in SIZE_VARIABLES if is_whole(os.environ.get(v, ""))), 1)


def find_mpiexec() -> str:
    """Path of the mpiexec beside this Python, or else of the one that is installed.

    Raises
    ------
    BackendError
        Without mpiexec.
    """
    beside = Path(sys.executable).with_name("mpiexec")
    program = str(beside) if beside.exists() else shutil.which("mpiexec")
    if program is None:
        raise BackendError(needs("mpiexec is not found", "mpich", ", or install an MPI"))
    return program


def load_mpi() -> Any:
    """Import mpi4py's MPI module, which starts MPI.

    Raises
    ------
    BackendError
        If mpi4py or the MPI library is missing, or is not the one whose mpirun started us.
    """
    try:
        # mpi4py's default thread level is kept: below "multiple", MPICH's polling no longer yields, and ranks that
        # share a core wait whole time slices for each other.
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        what, otherwise = f"MPI cannot be loaded ({reason})", ", or install mpi4py and an MPI"
        raise BackendError(needs(what, "mpich", otherwise)) from None
    if launched_size() > 1 and MPI.COMM_WORLD.Get_size() == 1:
        raise BackendError(
            f"mpirun started {launched_size()} processes, but the MPI that mpi4py has loaded sees only 1: "
            f"use the mpirun of {MPI.Get_library_version().splitlines()[0].strip()}"
        )
    return MPI


class MPITransport:
    """Messages and collectives over a duplicate of COMM_WORLD; see :class:`commsim.real.transport.RankTransport`.

    Raises
    ------
    BackendError
        If MPI cannot be loaded.
    """

    name = "mpi"
    look_ahead = 8

    def __init__(self) -> None:
        self._mpi = load_mpi()
        vendor, version = self._mpi.get_vendor()
        self.library = f"{vendor} {'.'.join(map(str, version))}"
        self._comm = self._mpi.COMM_WORLD.Dup()
        self.acknowledges = os.environ.get(ACKNOWLEDGE_VARIABLE) == "1"
        self._sleeps = os.environ.get(WAIT_VARIABLE) == "sleep"
        self.rank: int = self._comm.Get_rank()
        self.size: int = self._comm.Get_size()
        host = self._comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        self.ranks_per_host = int(self.max_over_ranks(np.array([float(host.Get_size())]))[0])
        host.Free()
        # Many ranks on few cores would need a page for each of their many small arrays, and are not predicted anyway.
        self._huge = not self._sleeps and self.ranks_per_host <= (os.cpu_count() or 1)
        self._send, self._receive = self._comm.Isend, self._comm.Irecv
        self._testsome: Callable[[list[Any]], list[int]] = self._mpi.Request.Testsome
        self._pause: Callable[[], None] = partial(time.sleep, PAUSE) if self._sleeps else os.sched_yield

    def empty(self, n_elements: int, dtype: str) -> NDArray[Any]:
        """Memory, written once so that its pages exist: huge ones, unless ranks are more than cores."""
        return huge_zeros(n_elements, dtype) if self._huge else np.full(n_elements, 0, dtype)

    def load(self, target: NDArray[Any], values: NDArray[Any]) -> None:
        """Copy values in."""
        target[:] = values

    def values(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array itself."""
        return array

    def isend(self, array: NDArray[Any], peer: int, tag: int) -> Any:
        """Start to send."""
        return self._send(array, peer, tag)

    def irecv(self, array: NDArray[Any], peer: int, tag: int) -> Any:
        """Start to receive."""
        return self._receive(array, peer, tag)

    def wait(self, handle: Any) -> None:
        """Return when complete."""
        if not self._sleeps:
            handle.Wait()
        else:
            while not handle.Test():
                time.sleep(PAUSE)

    def wait_some(self, handles: list[Any]) -> list[int]:
        """Return the places of those that are complete, when there are any."""
        # Not Waitsome: MPICH's keeps its core, and four ranks on two cores took a quarter longer for a ring with it.
        while not (complete := self._testsome(handles)):
            self._pause()
        return complete

    def receive_any_size(self, peer: int, tag: int) -> NDArray[np.uint8]:
        """Receive the next message of a peer and tag, however long it is: its size travels with it."""
        status = self._mpi.Status()
        message = self._comm.Mprobe(peer, tag, status)
        buffer = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
        message.Recv(buffer)
        return buffer

    def synchronize(self) -> None:
        """Nothing is left running after `wait`."""

    def barrier(self) -> None:
        """Return when every rank has called it."""
        self.wait(self._comm.Ibarrier())

    def max_over_ranks(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Largest value of any rank, element by element."""
        largest = np.empty_like(values)
        self.wait(self._comm.Iallreduce(values, largest, self._mpi.MAX))
        return largest

    def native(self, operation: str, n_elements: int, root: int, dtype: str, source: NDArray[Any]) -> Native:
        """Bind MPI's own collective.

        Raises
        ------
        BackendError
            If this operation is not offered.
        """
        memory = self.empty(n_elements, dtype)
        self.load(memory, source)
        other = self.empty(n_elements, dtype)
        block = n_elements // self.size
        own_block = slice(self.rank * block, (self.rank + 1) * block)
        comm, place = self._comm, self._mpi.IN_PLACE
        following, previous = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        offers: dict[str, tuple[Callable[[], None], NDArray[Any]]] = {
            "all_reduce": (lambda: comm.Allreduce(place, memory), memory),
            "reduce_scatter": (lambda: comm.Reduce_scatter_block(memory, other[:block]), other[:block]),
            "all_gather": (lambda: comm.Allgather(place, memory), memory),
            "broadcast": (lambda: comm.Bcast(memory, root), memory),
            "reduce": (lambda: comm.Reduce(memory, other, root=root), other),
            "all_to_all": (lambda: comm.Alltoall(memory, other), other),
            "gather": (lambda: comm.Gather(memory[own_block], other, root), other),
            "scatter": (lambda: comm.Scatter(memory, other[:block], root), other[:block]),
            "barrier": (comm.Barrier, memory),
            "send_recv": (lambda: comm.Sendrecv(memory, following, recvbuf=other, source=previous), other),
        }
        if operation not in offers:
            raise BackendError(f"MPI has no collective for {operation}")
        run, result = offers[operation]
        return Native(run, lambda: self.load(memory, source), result)

    def abort(self) -> None:
        """End all ranks, because this one cannot go on."""
        self._comm.Abort(1)

    def close(self) -> None:
        """Free the communicator; MPI itself ends with the process."""
        self._comm.Free()
