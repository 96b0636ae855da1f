"""How ranks are started in namespaces: by mpiexec for MPI, one by one for gloo."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from commsim.backends.mpi import ACKNOWLEDGE_VARIABLE, find_mpiexec

from .layout import OWN_DEVICE, Layout
from .places import Place

MASTER_PORT = 29400
MPICH = {
    "MPIR_CVAR_NOLOCAL": "1",  # no shared memory between ranks that believe themselves on one host
    ACKNOWLEDGE_VARIABLE: "1",  # without rendezvous, a send that is complete may still be in a buffer
}
UCX = {
    "UCX_TLS": "tcp,self",
    "UCX_RNDV_THRESH": "inf",  # UCX's rendezvous over TCP lets the two directions of an exchange go one after the other
}
OFI = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
"""Environment of MPICH's ranks; docs/testbed.md has the measurements behind it."""
OWN_MEMORY = "mount -t tmpfs none /dev/shm"
"""Hosts share no memory; and MPICH makes files there, which would stay when its processes are killed."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program in a node's namespace.

    Parameters
    ----------
    node : int
        Whose.
    words : tuple of str
        The program and its arguments.
    environment : mapping of str to str
        Beside that of this process.
    """

    node: int
    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def mpi_commands(
    place: Place, layout: Layout, seats: Sequence[int], directory: Path, more: dict[str, str]
) -> list[Command]:
    """Return mpiexec in the first seat's namespace; its launcher, a script in `directory`, enters the others'."""
    hosts = [str(layout.address(seat)) for seat in seats]
    cases = "".join(f"{host}) n={place.namespace(seat)};;\n" for host, seat in zip(hosts, seats, strict=True))
    script = directory / "launcher"
    script.write_text(f'#!/bin/sh\nhost=$1; shift\ncase $host in\n{cases}*) exit 1;;\nesac\n'
                      f'exec ip netns exec $n sh -c "{OWN_MEMORY}; $*"\n')  # fmt: skip
    script.chmod(0o755)
    device = layout.device(seats[0])
    options = [x for name, value in (MPICH | _carrier(device) | more).items() for x in ("-genv", name, value)]
    words = [find_mpiexec(), "-launcher", "rsh", "-launcher-exec", str(script), "-iface", device,
             "-hosts", ",".join(hosts), "-n", str(len(hosts)), "-ppn", "1", *options]  # fmt: skip
    first = ("sh", "-c", f'{OWN_MEMORY}; exec "$@"', "sh")  # whose rank mpiexec starts without the launcher
    return [Command(seats[0], (*first, *words, *_program("mpi")))]


def gloo_commands(layout: Layout, seats: Sequence[int], more: dict[str, str]) -> list[Command]:
    """Return one program per rank, which meet at the first one's address."""
    meeting = {"WORLD_SIZE": str(len(seats)), "LOCAL_WORLD_SIZE": str(len(seats)),
               "MASTER_ADDR": str(layout.address(seats[0])), "MASTER_PORT": str(MASTER_PORT)}  # fmt: skip
    found = []
    for rank, seat in enumerate(seats):
        device = layout.device(seat)
        own = {"RANK": str(rank), "GLOO_SOCKET_IFNAME": device, "TP_SOCKET_IFNAME": device}
        found.append(Command(seat, _program("gloo"), meeting | own | more))
    return found


def _carrier(device: str) -> dict[str, str]:
    """UCX takes only what lies behind the interface that it is given as reachable: not if a host has several ports."""
    return OFI | {"FI_TCP_IFACE": device} if device == OWN_DEVICE else UCX | {"UCX_NET_DEVICES": device}


def _program(backend: str) -> tuple[str, ...]:
    return sys.executable, "-m", "commsim.testbed.ranks", backend
