"""DCQCN's rate: cuts, recovery, and the two kinds of rise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from commsim.engine.packet.rate_kernel import cut_rate, pace, raise_rate
from commsim.engine.packet.traffic_state import FLOW_ROW
from commsim.engine.packet.transport import TRANSPORT_ROW

pytestmark = pytest.mark.nojit
LINE = 0.0125  # bytes per ps: 100 Gb/s
GAIN = 1 / 256


def rows() -> tuple[Any, Any]:
    flow, way = np.zeros(1, FLOW_ROW), np.zeros(1, TRANSPORT_ROW)
    flow["rate"] = flow["line"] = flow["target"] = LINE
    flow["alpha"], flow["alpha_at"] = 1.0, -1
    way["gain"], way["n_recovery"], way["decay_time"], way["rise_time"] = GAIN, 5, 55_000_000, 55_000_000
    way["additive"], way["hyper"], way["min_rate"], way["rise_bytes"] = 5e-6, 5e-5, 5e-6, 10_000_000
    return flow[0], way[0]


def test_the_first_notification_halves_the_rate_and_a_later_one_by_what_alpha_has_decayed_to() -> None:
    flow, way = rows()
    cut_rate(flow, way, 10**9)
    assert flow["rate"] == LINE / 2
    assert flow["target"] == LINE
    assert flow["alpha"] == 1.0
    cut_rate(flow, way, 10**9 + 20 * 55_000_000 + 1)
    decayed = (1 - GAIN) ** 20
    assert flow["rate"] == pytest.approx(LINE / 2 * (1 - decayed / 2))
    assert flow["alpha"] == pytest.approx(decayed + GAIN * (1 - decayed))


def test_four_rises_go_half_way_back_each_and_then_the_target_grows() -> None:
    flow, way = rows()
    cut_rate(flow, way, 0)
    cut_rate(flow, way, 1)
    target, rate = float(flow["target"]), float(flow["rate"])
    for k in range(1, 5):
        flow["by_time"] = k
        raise_rate(flow, way)
        rate = (rate + target) / 2
        assert flow["rate"] == pytest.approx(rate)
        assert flow["target"] == target
    flow["by_time"] = 5
    raise_rate(flow, way)
    assert flow["target"] == pytest.approx(target + way["additive"])
    flow["by_time"] = flow["by_bytes"] = 7
    raise_rate(flow, way)
    assert flow["target"] == pytest.approx(target + way["additive"] + 2 * way["hyper"])


def test_the_rate_ends_at_the_lines_and_never_falls_below_the_least() -> None:
    flow, way = rows()
    for k in range(40):
        cut_rate(flow, way, k)
    assert flow["rate"] == way["min_rate"]
    for k in range(10_000):
        flow["by_time"] = flow["by_bytes"] = k
        raise_rate(flow, way)
    assert flow["rate"] == flow["target"] == LINE


def test_packets_are_spaced_by_the_rate_and_every_ten_megabytes_raise_it() -> None:
    flow, way = rows()
    pace(flow, way, 1000, 4178)
    assert flow["free_at"] == 0  # at the line's rate the link itself is the pace
    cut_rate(flow, way, 0)
    pace(flow, way, 1000, 4178)
    assert flow["free_at"] == 1000 + 4178 / (LINE / 2)
    before = float(flow["rate"])
    for _ in range(10_000_000 // 4178):
        pace(flow, way, 1000, 4178)
    assert flow["by_bytes"] == 1
    assert flow["rate"] == (before + LINE) / 2
