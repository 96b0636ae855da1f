"""Random numbers of a run: what is lost depends on nothing but the link and the packet; all else is drawn in turn."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.packets.packet_rows import RunState

LOSS_DRAW, STATE_DRAW = 1, 2


@njit_norefcount
def draw(fabric: RunState) -> float:
    """Draw a number from 0 to 1: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014, Figure 1)."""
    state = fabric.state
    state["draws"] += np.uint64(0x9E3779B97F4A7C15)
    return float(mix(state["draws"]) >> np.uint64(11)) / 9007199254740992.0


@njit_norefcount
def mix(z: np.uint64) -> np.uint64:
    """Scramble a number: the finalizer of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit_norefcount
def uniform(seed: int, kind: int, link: int, count: int) -> float:
    """Return a number in [0, 1) that depends on nothing but the arguments (SplitMix64's finaliser on a counter).

    Parameters
    ----------
    seed : int
        Seed of the run.
    kind : int
        What is drawn: LOSS_DRAW or STATE_DRAW.
    link : int
        Number of the link.
    count : int
        Packets of the link so far.
    """
    z = np.uint64(count) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(link) * np.uint64(0xD1B54A32D192ED03)
    z += np.uint64(kind) * np.uint64(0x8CB92BA72F3D8DD7)
    z += np.uint64(seed) * np.uint64(0xA24BAED4963EE407)
    return float(mix(z) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit_norefcount
def is_lost(fabric: RunState, i: int) -> bool:
    """Tell whether the packet that arrives over a link is lost: by chance, in bursts where losses come in them."""
    link = fabric.link[i]
    link["n_arrived"] += 1
    count = link["n_arrived"]
    if link["to_bad"] > 0:
        flip = link["to_good"] if link["bad"] else link["to_bad"]
        if uniform(fabric.state["seed"], STATE_DRAW, i, count) < flip:
            link["bad"] = not link["bad"]
    loss = link["loss_bad"] if link["bad"] else link["loss"]
    return bool(uniform(fabric.state["seed"], LOSS_DRAW, i, count) < loss)
