"""A testbed for as long as it is needed: one that is up already, or one of our own that is gone afterwards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from commsim.core.network import Network

from .build import build
from .layout import TestbedLayout, lay_out
from .places import NamesOfTestbed, require, testbeds

# Begins the names of testbeds that a run has built for itself; the number of its process follows.
OWN = "own"


@contextlib.contextmanager
def temporary_testbed(
    network: Network, warn: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[NamesOfTestbed, TestbedLayout]]:
    """Build a testbed for the time of a `with`; those of dead processes are taken away first.

    Parameters
    ----------
    network : Network
        What is built.
    warn : callable
        Told what this kernel cannot do of it.

    Raises
    ------
    BackendError, InputError
        As :func:`commsim.real.testbed.build.build`.
    """
    require()
    remove_dead()
    place, layout = NamesOfTestbed(f"{OWN}{os.getpid()}"), lay_out(network)
    warnings = build(place, layout)
    try:
        for warning in warnings:
            warn(warning)
        yield place, layout
    finally:
        place.remove()


def up(name: str) -> tuple[NamesOfTestbed, TestbedLayout]:
    """Return the testbed of this name.

    Raises
    ------
    InputError
        If it is not up, or only in part.
    """
    require()
    place = NamesOfTestbed(name)
    return place, lay_out(place.network())


def remove_dead() -> list[str]:
    """Take away what runs that have died have left; return their names."""
    dead = []
    for place in testbeds():
        number = place.name.removeprefix(OWN)
        if place.name.startswith(OWN) and number.isdigit() and not Path("/proc", number).exists():
            place.remove()
            dead.append(place.name)
    return dead
