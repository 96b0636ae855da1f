"""Costs of messages that the user gives in place of a network's own."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from commsim.core.network import SWITCH, Network
from commsim.software.presets import software as software_named


def with_costs(
    network: Network,
    *,
    overhead: float | None = None,
    recv_overhead: float | None = None,
    gamma: float | None = None,
    software: str | None = None,
) -> Network:
    """Return the network with other costs of messages at every node; None leaves one as it is.

    Software is a preset of :mod:`commsim.software.presets`, which slows ports down.

    Gamma is left as it is at switches: one that aggregates adds as fast as its links bring, unless the network says
    otherwise.
    """
    if software is not None:
        network = software_named(software).on(network)
    given = {"overhead": overhead, "recv_overhead": recv_overhead}
    changes: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    if gamma is not None:
        changes["gamma"] = np.where(network.kind == SWITCH, network.gamma, gamma)
    return dataclasses.replace(network, **changes) if changes else network
