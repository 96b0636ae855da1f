"""What a testbed needs of a machine, and what this kernel has of it."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys

from commsim.core.errors import BackendError

PROGRAMS = {"ethtool": "ethtool", "nsenter": "util-linux", "unshare": "util-linux", "ip": "iproute2", "tc": "iproute2"}
"""Programs, and the Debian packages that have them."""


NEEDS_ROOT = "a testbed needs Linux and root: it makes network namespaces"


def lacking() -> str:
    """Return why no testbed can be built here, in a few words; or nothing."""
    if not _is_root():
        return NEEDS_ROOT
    if importlib.util.find_spec("pyroute2") is None:
        return "pyroute2 is missing; install commsim[testbed]"
    missing = [f"{program} (package {package})" for program, package in PROGRAMS.items() if not shutil.which(program)]
    if missing:
        return f"there is no {', '.join(missing)} here"
    if not has_veth():
        return "the kernel or this container lets nobody make veth pairs"
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
    """Refuse everybody who may not touch namespaces.

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


def _is_root() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0


def _works(command: str) -> bool:
    """Try a command in a network namespace that ends with it; without root or `unshare`, nothing works."""
    if shutil.which("unshare") is None:
        return False
    done = subprocess.run(["unshare", "--net", "sh", "-c", command], capture_output=True, timeout=10, check=False)
    return done.returncode == 0
