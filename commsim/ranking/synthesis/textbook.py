"""Registered collectives of an operation, planned to be held against what is made."""

from __future__ import annotations

from typing import Any

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.prediction.plans.dense import Plan
from commsim.ranking.contenders import algorithms_for, prepare_all


def registered(operation: str, network: Network, nodes: Any, root: int, max_messages: int) -> dict[str, Plan]:
    """Prepare the registered collectives of an operation that use ranks only; those that are longer are left out.

    Parameters
    ----------
    operation, network, nodes, root, max_messages
        Same as in :class:`.made_schedules.Maker`.
    """
    placement = Placement(nodes)
    names = [_of_root(name, root) for name in algorithms_for(operation, network)]
    try:
        found, _ = prepare_all(names, network, n_ranks=len(nodes), placement=placement)
    except InputError:
        return {}
    return {
        name: one for name, one in found.items()
        if not one.schedule.n_helpers
        and one.schedule.n_transfers <= max_messages and one.schedule.root == root
    }  # fmt: skip


def _of_root(name: str, root: int) -> str:
    return f"{name}:root={root}" if root and "root" in COLLECTIVES[name].parameters else name
