"""Colours that people with any kind of colour vision can tell apart.

References
----------
Okabe and Ito, "Color universal design", 2008, for what is named; Brewer's YlOrRd (colorbrewer2.org), which is marked
safe for colour blindness, for what is measured, and PuOr for what is above or below 1.

Sizes that the layouts share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.network import CPU, GPU, HOST, KINDS, MEMORY, NIC, SWITCH

# Beside the kinds of nodes, a box that stands for a whole machine.
MACHINE = len(KINDS)

FILL = {
    HOST: "#d9ebf7", SWITCH: "#fdebc8", GPU: "#cfeee3", CPU: "#f6dcea", NIC: "#e8e8e8", MEMORY: "#fbf6bd",
    MACHINE: "#d9ebf7",
}  # fmt: skip
STROKE = {
    HOST: "#0072b2", SWITCH: "#a86f00", GPU: "#00795a", CPU: "#a34d7c", NIC: "#5a5a5a", MEMORY: "#8a8000",
    MACHINE: "#0072b2",
}  # fmt: skip
INK, FAINT, LINK = "#222222", "#6b6b6b", "#9a9a9a"
COPY, REDUCE = "#0072b2", "#d55e00"
LANES = ("#f6f6f6", "#ffffff")
HELPER_LANE = "#f3ecf6"

IDLE = "#c9c9c9"
FAULT = "#7a1fa2"  # of dead and slower cables: no colour of a load
LOAD_RAMP = ((254, 217, 118), (254, 178, 76), (253, 141, 60), (240, 59, 32), (189, 0, 38), (110, 0, 30))
# From below 1 (orange) to above 1 (purple), neutral in the middle.
RATIO_RAMP = (
    (179, 88, 6),
    (241, 163, 64),
    (254, 224, 182),
    (247, 247, 247),
    (216, 218, 235),
    (153, 142, 195),
    (84, 39, 136),
)
# Okabe and Ito's colours in the order in which neighbours differ most.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
# Where the colours of ratios may end: squares, so that the middle of each half is a short number too.
RATIO_ENDS = (1.21, 1.44, 2.25, 4.0, 9.0, 25.0, 100.0, 400.0, 2500.0, 10_000.0)
EFFECTS = {"copied": COPY, "added on arrival": REDUCE}
_LOAD = np.array(LOAD_RAMP)
BOX_HEIGHT, GAP, LEAST_WIDTH = 24.0, 10.0, 30.0
# At least as wide is a drawing in rows; beyond this the names in a row are cut to their numbers.
NARROW, WIDE = 540.0, 1500.0
# Distance between boxes on a circle, and up to how many.
LOOSE, MAX_LOOSE = 50.0, 24

# Colours of the figures of a page, and of those of a dark page. Loads rise
# from dark to bright there, so that what is idle stands back on both.
CHART: dict[str, Any] = {
    "ink": INK, "faint": FAINT, "grid": "#e6e6e6", "band": "#cfcfcf", "paper": "#ffffff", "idle": IDLE,
    "series": SERIES, "load": LOAD_RAMP,
}  # fmt: skip
DARK_CHART: dict[str, Any] = {
    "ink": "#e6e6e6", "faint": "#a9adb3", "grid": "#343a41", "band": "#454c54", "paper": "#1e2227", "idle": "#363c43",
    "series": ("#3d9bd6", "#e8743b", *SERIES[2:-1], "#f2f2f2"), "load": LOAD_RAMP[::-1],
}  # fmt: skip


def load_colour(load: float) -> str:
    """Colour of a load of 0 (idle) to 1."""
    if not load > 0:
        return IDLE
    at = min(1.0, load) * (len(_LOAD) - 1)
    low = min(int(at), len(_LOAD) - 2)
    mixed = _LOAD[low] + (at - low) * (_LOAD[low + 1] - _LOAD[low])
    return "#" + "".join(f"{round(channel):02x}" for channel in mixed)
