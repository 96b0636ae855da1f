"""What is left of a testbed on this machine, and of nobody else's: others may have theirs here at the same time."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from commsim.real.testbed.places import KEPT, NamesOfTestbed

MARK = "COMMSIM_KILLED"
SHARED_MEMORY = Path("/dev/shm")
DEVICES = ("p", "br", "own")  # how interfaces of testbeds begin


@dataclass(frozen=True, slots=True)
class Before:
    """What was there already.

    Parameters
    ----------
    devices : frozenset of str
        Interfaces outside of all namespaces.
    memory : frozenset of Path
        Files of shared memory.
    """

    devices: frozenset[str]
    memory: frozenset[Path]

    @classmethod
    def now(cls) -> Before:
        """Look."""
        return cls(frozenset(_devices()), frozenset(SHARED_MEMORY.iterdir()))


def remains(place: NamesOfTestbed, name: str, before: Before, folder: str) -> list[str]:
    """Return what there is of a testbed, in words.

    Parameters
    ----------
    place : NamesOfTestbed
        Its names.
    name : str
        The mark in the environment of all processes that were started for it.
    before : Before
        What was there already, of others.
    folder : str
        Where its processes make their temporary files.
    """
    found = [f"namespace {one}" for one in place.namespaces()]
    found += [f"directory {place.directory}"] if (KEPT / place.name).exists() else []
    found += [f"process {pid}" for pid in marked(name)]
    found += [f"interface {device}" for device in sorted(_devices() - before.devices)]
    found += [f"file {path}" for path in sorted(set(SHARED_MEMORY.iterdir()) - before.memory) if not _used(path)]
    return found + [f"file {path}" for path in sorted(Path(folder).iterdir())]


def marked(name: str) -> list[int]:
    """Numbers of all processes that descend from those that we have started: they inherit the mark."""
    mark = f"{MARK}={name}".encode()
    return [int(path.name) for path in Path("/proc").iterdir()
            if path.name.isdigit() and mark in _read(path / "environ").split(b"\0")]  # fmt: skip


def _used(path: Path) -> bool:
    return any(str(path).encode() in _read(one / "maps") for one in Path("/proc").iterdir() if one.name.isdigit())


def _devices() -> set[str]:
    found = subprocess.run(["ip", "-j", "link"], capture_output=True, check=True).stdout
    return {link["ifname"] for link in json.loads(found) if link["ifname"].rstrip("0123456789") in DEVICES}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
