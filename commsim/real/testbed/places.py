"""Where a testbed is kept, what dead ones have left, and what a testbed needs of a machine."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import BackendError, InputError
from commsim.core.extras import told_extra
from commsim.core.files.store import read_network, save
from commsim.core.network import Network

PREFIX = "commsim-"
NAMESPACES, KEPT = Path("/run/netns"), Path("/run/commsim")
NAME = re.compile(r"[a-z0-9]{1,16}")
USUAL = "testbed"
SECONDS_TO_DIE = 5.0
# Programs, and the Debian packages that have them.
PROGRAMS = {"ethtool": "ethtool", "nsenter": "util-linux", "unshare": "util-linux", "ip": "iproute2", "tc": "iproute2"}
NEEDS_ROOT = "a testbed needs Linux and root: it makes network namespaces"


@dataclass(frozen=True, slots=True)
class NamesOfTestbed:
    """The names that belong to one testbed; all of them begin with the same prefix.

    Raises
    ------
    InputError
        If the name is not 1 to 16 small letters and digits.
    """

    name: str = USUAL

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InputError(f"a testbed's name is 1 to 16 small letters and digits, got {self.name!r}")

    @property
    def directory(self) -> Path:
        """What is remembered of it; made before anything else, and taken away last."""
        return KEPT / self.name

    def namespace(self, node: int) -> str:
        """Name of a node's namespace."""
        return f"{PREFIX}{self.name}-{node}"

    def namespaces(self) -> list[str]:
        """Return which of its namespaces there are."""
        pattern = re.compile(rf"{PREFIX}{self.name}-\d+")
        return sorted(path.name for path in NAMESPACES.glob(f"{PREFIX}*") if pattern.fullmatch(path.name))

    def claim(self, network: Network) -> None:
        """Take the name, and remember the network.

        Raises
        ------
        InputError
            If the name is taken.
        """
        KEPT.mkdir(mode=0o755, exist_ok=True)
        try:
            self.directory.mkdir()
        except FileExistsError:
            raise InputError(f"there is a testbed {self.name} already; `commsim testbed down {self.name}`, "
                             "or choose another --name") from None  # fmt: skip
        save(network, self.directory / "network.json")

    def finish(self) -> None:
        """Record that everything is built."""
        (self.directory / "ready").touch()

    @property
    def ready(self) -> bool:
        """Whether everything is built."""
        return (self.directory / "ready").exists()

    def network(self) -> Network:
        """Return the network that was built.

        Raises
        ------
        InputError
            If the testbed is unknown, or only its remains are left.
        """
        if not self.ready:
            what = "is not complete: take it `down`" if self.directory.exists() else "is not there"
            raise InputError(f"testbed {self.name} {what}; `commsim testbed status` lists those that are up")
        return read_network(self.directory / "network.json")

    def processes(self) -> list[int]:
        """Numbers of the processes that run in its namespaces: only a testbed starts any there."""
        inside = {(NAMESPACES / name).stat().st_ino for name in self.namespaces()}
        return [pid for pid in _numbers() if pid != os.getpid() and _network_namespace(pid) in inside]

    def remove(self) -> None:
        """Take everything away, however little or much of it there is; no error if nothing is left.

        Raises
        ------
        BackendError
            If a process of the testbed cannot be ended.
        """
        self._end_processes()
        for name in self.namespaces():
            _remove_namespace(name)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _end_processes(self) -> None:
        deadline = time.monotonic() + SECONDS_TO_DIE
        while left := self.processes():
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            if time.monotonic() > deadline:
                raise BackendError(f"testbed {self.name}: processes {left} do not end")
            time.sleep(0.01)


def testbeds() -> list[NamesOfTestbed]:
    """Return all testbeds that have left anything, the remains of dead ones too."""
    names = {path.name for path in KEPT.glob("*") if NAME.fullmatch(path.name)}
    pattern_of_name = re.compile(rf"{PREFIX}([a-z0-9]{{1,16}})-\d+")
    names |= {match[1] for path in NAMESPACES.glob(f"{PREFIX}*") if (match := pattern_of_name.fullmatch(path.name))}
    return [NamesOfTestbed(name) for name in sorted(names)]


def _numbers() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _network_namespace(pid: int) -> int:
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except OSError:
        return -1


def _remove_namespace(name: str) -> None:
    from pyroute2 import netns

    path = NAMESPACES / name
    try:
        netns.remove(name)
    except OSError:
        path.unlink(missing_ok=True)  # the name was made, but nothing was mounted on it: we were killed between the two


def lacking() -> str:
    """Return why no testbed can be built here, in a few words; or nothing."""
    if not _is_root():
        return NEEDS_ROOT
    if importlib.util.find_spec("pyroute2") is None:
        return told_extra("pyroute2")
    missing = [f"{program} (package {package})" for program, package in PROGRAMS.items() if not shutil.which(program)]
    if missing:
        return f"{', '.join(missing)} missing here"
    if not has_veth():
        return "the kernel or this container forbids veth pairs"
    return "" if has_buckets() else "the kernel has no token buckets (tc tbf) to give links their rates"


def require() -> None:
    """Refuse where no testbed can be built.

    Raises
    ------
    BackendError
        With what is missing.
    """
    why = lacking()
    if why:
        raise BackendError(why)


def require_root() -> None:
    """Refuse users that may not change namespaces.

    Raises
    ------
    BackendError
        If we are not root, or this is not Linux.
    """
    if not _is_root():
        raise BackendError(NEEDS_ROOT)


@functools.cache
def has_veth() -> bool:
    """Whether there are cables between namespaces."""
    return _works("ip link add type veth")


@functools.cache
def has_buckets() -> bool:
    """Whether the kernel's token buckets can give a link its rate."""
    return _works("tc qdisc add dev lo root tbf rate 1mbit burst 18028 limit 100000")


@functools.cache
def has_netem() -> bool:
    """Whether the kernel can delay and lose packets in a queue of its own."""
    return _works("tc qdisc add dev lo root netem delay 1ms")


@functools.cache
def has_nftables() -> bool:
    """Whether packets can be lost at random by a rule."""
    rule = "table netdev t { chain c { type filter hook egress device lo priority 0; numgen random mod 9 < 1 drop; }; }"
    return shutil.which("nft") is not None and _works(f"nft '{rule}'")


@functools.cache
def has_fair_queues() -> bool:
    """Whether ports can have a queue for every pair of hosts."""
    rule = "table netdev t { chain c { type filter hook egress device lo priority 0; meta priority set 0x30001; }; }"
    return shutil.which("nft") is not None and _works(f"tc qdisc add dev lo root htb && nft '{rule}'")


def _is_root() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0


def _works(command: str) -> bool:
    """Try a command in a network namespace that ends with it; without root or `unshare`, nothing works."""
    if shutil.which("unshare") is None:
        return False
    done = subprocess.run(["unshare", "--net", "sh", "-c", command], capture_output=True, timeout=10, check=False)
    return done.returncode == 0
