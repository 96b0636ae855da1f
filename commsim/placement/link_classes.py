"""Classes of links on which the same jobs demand the same shares, and those that their jobs can exceed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network

from .starts.job_uses import OwnPath


@dataclass(frozen=True, slots=True)
class LinkClass:
    """Links on which the same jobs demand the same parts of the capacity.

    Parameters
    ----------
    jobs : tuple of int
        Those that pass.
    part : float64[n_jobs], s/byte
        Factor that turns a rate of each of these jobs into a share of the capacity.
    links : int64[n_links]
        Numbers of the links.
    """

    jobs: tuple[int, ...]
    part: NDArray[np.float64]
    links: NDArray[np.int64]


class PlacedLinks(list[LinkClass]):
    """Classes of the links of one placement.

    Parameters
    ----------
    classes : sequence of LinkClass
    own : mapping of int to OwnPath
        What the phases of jobs need on their own paths, of jobs whose phases have different groups.
    """

    def __init__(self, classes: Sequence[LinkClass], own: Mapping[int, OwnPath]) -> None:
        super().__init__(classes)
        self.own = own


def link_classes(network: Network, use: NDArray[np.float64], own: Mapping[int, OwnPath] | None = None) -> PlacedLinks:
    """Group the links that carry anything.

    Parameters
    ----------
    use : float64[n_jobs, n_links]
        How many times its rate each job sends over each link.
    own : mapping of int to OwnPath, optional
        As :func:`.own_paths` finds it.
    """
    job, link = np.nonzero(use)
    times = np.round(use[job, link], 9)
    order = np.argsort(link, kind="stable")
    order = order[times[order] > 0]
    if not order.size:
        return PlacedLinks([], own or {})
    job, link = job[order], link[order]
    part = times[order] / network.bandwidth[link]
    used, first = np.unique(link, return_index=True)
    ends, jobs, size = [*first[1:].tolist(), len(link)], job.tolist(), part.itemsize
    of_jobs, of_parts = job.tobytes(), part.tobytes()
    classes: dict[tuple[bytes, bytes], tuple[int, int, list[int]]] = {}  # in the order of links
    for number, begin, end in zip(used.tolist(), first.tolist(), ends, strict=True):
        key = of_jobs[size * begin : size * end], of_parts[size * begin : size * end]
        if key not in classes:
            classes[key] = begin, end, []
        classes[key][2].append(number)
    found = [
        LinkClass(tuple(jobs[begin:end]), part[begin:end], np.array(links)) for begin, end, links in classes.values()
    ]
    return PlacedLinks(found, own or {})


class KnownClass(NamedTuple):
    """A class of links, what decides how its jobs meet, their numbers, and whether they can exceed it."""

    links: LinkClass
    key: tuple[tuple[int, ...], bytes]
    member: NDArray[np.int64]
    is_tight: bool


class Passages(NamedTuple):
    """Jobs on classes of links one after the other: their numbers, their parts, and where each class begins."""

    member: NDArray[np.int64]
    part: NDArray[np.float64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, classes: Sequence[LinkClass]) -> Passages:
        """Return those of some classes."""
        member = np.array([job for links in classes for job in links.jobs], np.int64)
        part = np.concatenate([np.zeros(0), *(links.part for links in classes)])
        return cls(member, part, np.cumsum([0, *(len(links.jobs) for links in classes)]))


class Met(NamedTuple):
    """How jobs meet on classes of links.

    Parameters
    ----------
    score : float64[n_classes]
        Score of each link of a class.
    times : float64[n_passages], s
        Iteration time of each job, with what it loses there.
    """

    score: NDArray[np.float64]
    times: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TightLinks:
    """Classes of links that their jobs can exceed, of a component.

    Parameters
    ----------
    jobs : list of int
        Jobs of the component.
    links : list of LinkClass
        Classes of links.
    on : Passages
        Jobs on these.
    met : dict of bytes to Met
        How they meet at the start times that were asked for last; under nothing, on average over all.
    """

    jobs: list[int]
    links: list[LinkClass]
    on: Passages
    met: dict[bytes, Met] = field(default_factory=dict)
