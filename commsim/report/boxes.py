"""What is drawn as one box: a node, a whole machine, endpoints that hang on the same switches, the middle of a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import KINDS, PLURALS, Network

from .grid import grid_dims
from .merging import MAX_IN_ROW, MAX_IN_ROW_IF_ASKED, elided_rows, fewer, machines
from .palette import MACHINE

MAX_ENDPOINTS = 48
"""Drawn one by one unless asked otherwise."""
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """How the nodes of a network are drawn.

    Parameters
    ----------
    of_node : int64[n_nodes]
        Box of each node; boxes are numbered in the order of their first nodes.
    row : int64[n_boxes]
        Row of each box, 0 at the bottom.
    kind : int64[n_boxes]
        An index of ``KINDS``, or ``MACHINE``.
    size : int64[n_boxes]
        How many nodes or machines a box stands for.
    label, title : tuple of str
        What is written in each box, and what its tooltip says.
    notes : tuple of str
        What was drawn as one, to be told to the reader.
    """

    of_node: Numbers
    row: Numbers
    kind: Numbers
    size: Numbers
    label: tuple[str, ...]
    title: tuple[str, ...]
    notes: tuple[str, ...]


def make_boxes(network: Network, collapse: bool | None = None) -> Boxes:
    """Choose the boxes of a network's picture.

    Parameters
    ----------
    network : Network
        To be drawn; a node is in the row of its tier.
    collapse : bool, optional
        Whether a machine is one box, and endpoints or machines with the same neighbours are one box together. By
        default when there are more than ``MAX_ENDPOINTS``. The middle of rows that are still long is one box.
    """
    n_endpoints = len(network.endpoints)
    merge = n_endpoints > MAX_ENDPOINTS if collapse is None else collapse
    of_node, row = machines(network, merge)
    unit = fewer(network, of_node, row) if merge else np.arange(len(row))
    long = MAX_IN_ROW_IF_ASKED if not merge or grid_dims(network) else MAX_IN_ROW
    unit, elided = elided_rows(unit, row, long)
    first, of_unit = np.unique(unit, return_index=True, return_inverse=True)[1:]
    size = np.bincount(of_unit)
    notes = []
    if collapse is None and len(first) < network.n_nodes and merge:
        notes.append(f"collapsed, since there are more than {MAX_ENDPOINTS} {PLURALS[network.seat_kind]}")
    if elided.any():
        notes.append(f"of rows with more than {long} boxes the middle is one box")
    label, title, kind = _describe(network, of_unit[of_node], size, elided[first])
    return Boxes(of_unit[of_node], row[first], kind, size, label, title, tuple(notes))


def _describe(
    network: Network, of_node: Numbers, size: Numbers, elided: NDArray[np.bool_]
) -> tuple[tuple[str, ...], tuple[str, ...], Numbers]:
    """Label, title and kind of each box."""
    labels, titles, kinds = [], [], []
    order = np.argsort(of_node, kind="stable")
    for box, nodes in enumerate(np.split(order, np.cumsum(np.bincount(of_node))[:-1])):
        machines = np.unique(network.machine[nodes])
        is_machine = len(nodes) > size[box] and machines[0] >= 0
        kind = MACHINE if is_machine else int(network.kind[nodes[0]])
        plural = "machines" if is_machine else PLURALS[kind]
        names = [network.nodes[nodes[0]], network.nodes[nodes[-1]]]
        if is_machine:
            ends = (nodes[network.machine[nodes] == m] for m in (machines[0], machines[-1]))
            names = [_machine_name(network, of_machine) for of_machine in ends]
        if size[box] == 1:
            labels.append(names[0])
            what = _content(network, nodes) if is_machine else KINDS[kind]
            titles.append(f"{names[0]}: {what}")
        else:
            labels.append(f"{size[box]} more" if elided[box] else f"{size[box]} {plural}")
            titles.append(f"{size[box]} {plural}: {names[0]} … {names[1]}")
        kinds.append(kind)
    return tuple(labels), tuple(titles), np.array(kinds, np.int64)


def _machine_name(network: Network, nodes: Numbers) -> str:
    """Return what the names of a machine's nodes begin with, up to a separator; else its number."""
    begin = _common([network.nodes[node] for node in nodes])
    cut = max(begin.rfind(separator) for separator in "._-/:")
    return begin[:cut] if cut > 0 else f"machine {network.machine[nodes[0]]}"


def _common(names: list[str]) -> str:
    """Return the longest text that all names begin with: that of the first and the last one in alphabetic order."""
    first, last = min(names), max(names)
    n = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:n]


def _content(network: Network, nodes: Numbers) -> str:
    count = np.bincount(network.kind[nodes], minlength=len(KINDS))
    return ", ".join(f"{n} {KINDS[k] if n == 1 else PLURALS[k]}" for k, n in enumerate(count) if n)
