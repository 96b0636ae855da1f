"""How the processes of a torch.distributed job find each other, whatever launcher started them."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Any

import numpy as np

from commsim.core.compiling.notices import RANK_VARIABLES
from commsim.core.errors import BackendError

from .mpi import launched_size, load_mpi

_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_LONGEST_NAME = 256


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """Where the ranks have met.

    Parameters
    ----------
    store : torch.distributed.Store
        Connected key-value store.
    rank, size : int
        This process, and how many there are.
    local_rank, ranks_per_host : int
        Number of this process on its host, and the most ranks that share one host.
    """

    store: Any
    rank: int
    size: int
    local_rank: int
    ranks_per_host: int


def meet(torch_distributed: Any) -> Rendezvous:
    """Meet under torchrun (its environment) or mpirun (MPI carries the address), or as a single process.

    Raises
    ------
    BackendError
        If a launcher started several processes, but neither way works.
    """
    if all(v in os.environ for v in _TORCHRUN):
        return _meet_by_environment(torch_distributed)
    if launched_size() == 1 and not any(v in os.environ for v in RANK_VARIABLES):
        return Rendezvous(_open_store(torch_distributed, "127.0.0.1", 1), 0, 1, 0, 1)
    return _meet_by_mpi(torch_distributed)


def _meet_by_environment(torch_distributed: Any) -> Rendezvous:
    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        port = int(os.environ["MASTER_PORT"])
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        ranks_per_host = int(os.environ.get("LOCAL_WORLD_SIZE", str(size)))
    except ValueError as error:
        raise BackendError(f"the environment of torchrun is wrong: {error}") from None
    # torchrun's agent may already serve a store at this address.
    agent_serves = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = torch_distributed.TCPStore(os.environ["MASTER_ADDR"], port, size, rank == 0 and not agent_serves)
    return Rendezvous(torch_distributed.PrefixStore("commsim", store), rank, size, local_rank, ranks_per_host)


def _meet_by_mpi(torch_distributed: Any) -> Rendezvous:
    """Rank 0 serves a store on a port that the system picks, and MPI tells the others."""
    mpi = load_mpi()
    comm = mpi.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    host = comm.Split_type(mpi.COMM_TYPE_SHARED)
    local_rank, per_host = host.Get_rank(), np.array([host.Get_size()])
    host.Free()
    comm.Allreduce(mpi.IN_PLACE, per_host, mpi.MAX)
    alone = int(per_host[0]) == size
    if alone:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    port, name = np.zeros(1, np.int64), np.zeros(_LONGEST_NAME, np.uint8)
    store = None
    if rank == 0:
        address = "127.0.0.1" if alone else socket.gethostname()
        store = _open_store(torch_distributed, address, size)
        port[0] = store.port
        name[: len(address)] = np.frombuffer(address.encode(), np.uint8)
    comm.Bcast(port)
    comm.Bcast(name)
    if store is None:
        store = torch_distributed.TCPStore(name.tobytes().rstrip(b"\0").decode(), int(port[0]), size, False)
    return Rendezvous(store, rank, size, local_rank, int(per_host[0]))


def _open_store(torch_distributed: Any, address: str, size: int) -> Any:
    return torch_distributed.TCPStore(address, 0, size, True, wait_for_workers=False)
