"""The peers, and how each is made ready: compiled from the programs here, or found in a Python."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import CommsimError

from .works import Messages, Work

HERE = Path(__file__).resolve().parent
NS3_LIBRARIES = ("core", "network", "internet", "point-to-point", "traffic-control")


class NotInstalledError(CommsimError):
    """A peer is not on this machine; the message says how to install it."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another simulator.

    Parameters
    ----------
    name : str
        And in which way it is used, where there are two.
    plays : callable
        Whether it can replay a work, in a way that makes sense there.
    ready : callable
        From a folder for what is compiled, and the Python that may have it, to the command; the work file is added.
    last : tuple of str
        What stands behind the work file.
    """

    name: str
    plays: Callable[[Work, Messages], bool]
    ready: Callable[[Path, str], list[str]]
    last: tuple[str, ...] = ()


def compiled(source: str, headers: str, libraries: tuple[str, ...], packages: str, folder: Path) -> list[str]:
    """Compile one of the programs here, unless it is there already.

    Raises
    ------
    NotInstalledError
        If there is no compiler or no such library.
    CommsimError
        If it does not compile.
    """
    program = folder / Path(source).stem
    if program.exists():
        return [str(program)]
    compiler = shutil.which("g++")
    probe = f"#include <{headers}>\nint main() {{}}\n"
    link = [f"-l{name}" for name in libraries]
    look = ["-x", "c++", "-std=c++17", "-", "-o", str(folder / "probe"), *link]
    if not compiler or subprocess.run([compiler, *look], input=probe, text=True, capture_output=True).returncode:
        raise NotInstalledError(f"not installed; on Debian: apt-get install g++ {packages}")
    build = [compiler, "-O2", "-std=c++17", str(HERE / source), "-o", str(program), *link]
    done = subprocess.run(build, text=True, capture_output=True)
    if done.returncode:
        raise CommsimError(f"{source} does not compile: {done.stderr.strip().splitlines()[0]}")
    return [str(program)]


def simgrid(folder: Path, python: str) -> list[str]:  # noqa: ARG001 - the others need it
    """Compile the program for SimGrid's S4U interface."""
    return compiled("simgrid_replay.cpp", "simgrid/s4u.hpp", ("simgrid",), "libsimgrid-dev", folder)


def ns3(folder: Path, python: str) -> list[str]:  # noqa: ARG001
    """Compile the program for ns-3."""
    libraries = tuple(f"ns3-{name}" for name in NS3_LIBRARIES)
    return compiled("ns3_replay.cpp", "ns3/point-to-point-module.h", libraries, "libns3-dev", folder)


def ns_py(folder: Path, python: str) -> list[str]:  # noqa: ARG001
    """Find ns.py in the Python that was named.

    Raises
    ------
    NotInstalledError
        If it is not there.
    """
    look = [python, "-c", "import ns.port.port, simpy"]
    if not shutil.which(python) or subprocess.run(look, capture_output=True).returncode:
        raise NotInstalledError(f"not installed for {Path(python).name}; pip install ns.py, and say --python FILE")
    return [python, str(HERE / "ns_py_replay.py")]


def _both_ends(work: Work, messages: Messages) -> bool:
    return work.engine == "flow" and not messages.fetched


def _fetches(work: Work, messages: Messages) -> bool:
    return work.engine == "flow" and messages.fetched


def _packets(work: Work, messages: Messages) -> bool:
    return work.engine == "packet" and not messages.fetched


PEERS = (
    Peer("SimGrid", _both_ends, simgrid, ("mailboxes",)),
    Peer("SimGrid, direct", _fetches, simgrid, ("direct",)),
    Peer("SimGrid, mailboxes", _fetches, simgrid, ("mailboxes",)),
    Peer("ns-3", _packets, ns3),
    Peer("ns.py", _packets, ns_py),
)
