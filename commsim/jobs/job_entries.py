"""Jobs and background traffic that share a network, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commsim.engine.flow_job import number_of

JOBS_ONLY = "jobs describe the whole run; {} cannot be used with them"
__all__ = ["Background", "Composition", "JobEntry", "number_of_unnamed"]


@dataclass(frozen=True, slots=True)
class JobEntry:
    """One job: a collective on some ranks.

    Parameters
    ----------
    name, collective : str
        What the tables call it, and ``name:key=value,...`` of a collective.
    ranks : tuple of int
        Members among the network's ranks, in the order in which they are the collective's.
    size : float, bytes
        Size of the collective.
    start : float, s
        Time at which all its ranks begin.
    weight, priority, rate_cap
        Same as in :class:`commsim.engine.flow_job.FlowJob`.
    number : int, optional
        Number that ECMP hashes, by which the simulation also orders jobs. Default: the job's position.
    packets : mapping of str to value, optional
        How its packets are sent, some of ``composition.OWN``, in SI units. Default: as the run's.
    machines : tuple of int, optional
        Machines all of whose ranks are members, in place of `ranks`.
    placement : str
        Names of machines, hosts or GPUs, as ``--placement`` takes them, in place of both; empty without them.
    """

    name: str
    collective: str
    ranks: tuple[int, ...]
    size: float
    start: float = 0.0
    weight: float = 1.0
    priority: int = 0
    rate_cap: float = float("inf")
    number: int | None = None
    packets: Mapping[str, Any] | None = None
    machines: tuple[int, ...] = ()
    placement: str = ""


@dataclass(frozen=True, slots=True)
class Background:
    """Traffic that is no collective's.

    Parameters
    ----------
    kind : {"poisson", "incast", "send"}
        Messages between random hosts at random times; from several hosts at once to one of them; or from hosts that
        are named to others, as those of a job and of a store are.
    until : float, s
        The last begins before.
    load : float
        Load of a Poisson process: mean share of what hosts can send.
    size : float or None, bytes
        Size of each message; None draws sizes of a web search's traffic. Of hosts that are named, what each sends in
        all, in equal parts to all receivers.
    senders, every : int, float
        Incast: number of hosts that send, and the time between two of them, s.
    source, target : str
        Names of the hosts that send and receive, as ``--placement`` takes them.
    priority : int
        Same as in :class:`JobEntry`.
    packets : mapping of str to value, optional
        Same as in :class:`JobEntry`.
    """

    kind: str
    until: float
    load: float = 0.0
    size: float | None = None
    senders: int = 0
    every: float = 0.0
    priority: int = 0
    packets: Mapping[str, Any] | None = None
    source: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Composition:
    """All that runs at once.

    Parameters
    ----------
    jobs : tuple of JobEntry
        Jobs, at least one.
    background : tuple of Background
        What else is sent.
    """

    jobs: tuple[JobEntry, ...]
    background: tuple[Background, ...]


def number_of_unnamed(collective: str, ranks: tuple[int, ...]) -> int:
    """Return the number of a job without a name: the same wherever it stands among others."""
    return number_of(f"{collective} {ranks}")
