"""DCTCP's window, one acknowledgement after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from commsim.engine.packet.traffic_state import FLOW_ROW
from commsim.engine.packet.transport import TRANSPORT_ROW
from commsim.engine.packet.window_kernel import adjust_window, collapse, note_losses

pytestmark = pytest.mark.nojit


def rows(**fields: float) -> tuple[Any, Any]:
    flow, way = np.zeros(1, FLOW_ROW), np.zeros(1, TRANSPORT_ROW)
    flow["threshold"], flow["alpha"], flow["resend"] = np.inf, 1.0, -1
    way["gain"], way["max_window"] = 1 / 16, 1000
    for name, value in fields.items():
        flow[name] = value
    return flow[0], way[0]


def acknowledge(flow: Any, way: Any, n: int, marked: bool = False) -> None:
    flow["una"] += n
    note_losses(flow, n)
    adjust_window(flow, way, n, marked)


def test_slow_start_doubles_in_a_round_until_the_first_mark_halves_it() -> None:
    flow, way = rows(window=10.0, fresh=10, round_end=10)
    for _ in range(9):
        acknowledge(flow, way, 1)
    assert flow["window"] == 19
    flow["fresh"] = 29
    acknowledge(flow, way, 1, marked=True)
    # the round ended with this mark, one of ten: alpha was 1 and is now 15/16 + 0.1/16
    alpha = 1 + (0.1 - 1) / 16
    assert flow["alpha"] == pytest.approx(alpha)
    assert flow["window"] == flow["threshold"] == pytest.approx(19 * (1 - alpha / 2))


def test_a_round_of_marks_cuts_once_and_the_window_does_not_grow_meanwhile() -> None:
    flow, way = rows(window=20.0, fresh=20, round_end=1000, threshold=10.0)
    acknowledge(flow, way, 1, marked=True)
    assert flow["window"] == 10
    for k in range(18):
        acknowledge(flow, way, 1, marked=k % 2 == 0)
    assert flow["window"] == 10
    acknowledge(flow, way, 1)  # what was sent before the cut is acknowledged
    assert flow["window"] == pytest.approx(10.1)


def test_alpha_follows_the_share_of_marks() -> None:
    flow, way = rows(window=10.0, alpha=0.0, threshold=5.0)
    for _ in range(200):
        flow["round_end"] = flow["fresh"] = flow["una"] + 10
        for k in range(10):
            acknowledge(flow, way, 1, marked=k < 3)
    assert flow["alpha"] == pytest.approx(0.3, rel=1e-3)


def test_three_repetitions_repeat_the_missing_packet_and_each_further_hole_follows() -> None:
    flow, _ = rows(window=20.0, una=5, fresh=25, next=25)
    for _ in range(2):
        note_losses(flow, 0)
    assert (flow["resend"], flow["recovering"]) == (-1, False)
    note_losses(flow, 0)
    assert (flow["resend"], flow["recovering"], flow["window"], flow["recover"]) == (5, True, 10, 25)
    flow["resend"] = -1
    for _ in range(10):
        note_losses(flow, 0)
    assert (flow["resend"], flow["window"], flow["dup"]) == (-1, 10, 13)
    flow["una"] = 9  # packet 5 has come, packet 9 is missing, too
    note_losses(flow, 4)
    assert (flow["resend"], flow["recovering"], flow["dup"]) == (9, True, 10)
    flow["una"] = 25
    note_losses(flow, 16)
    assert (flow["recovering"], flow["dup"]) == (False, 0)


def test_after_a_timeout_the_window_is_one_packet_and_old_repetitions_do_not_count() -> None:
    flow, _ = rows(window=20.0, una=5, fresh=25, next=25)
    collapse(flow)
    assert (flow["window"], flow["threshold"], flow["recover"]) == (1, 10, 25)
    for _ in range(5):
        note_losses(flow, 0)
    assert (flow["resend"], flow["recovering"]) == (-1, False)
