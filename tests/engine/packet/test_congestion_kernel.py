"""DCTCP's window, one acknowledgement after the other; DCQCN's rate: cuts, recovery, and the two kinds of rise."""

from typing import Any

import numpy as np
import pytest

from commsim.engine.packet.congestion_kernel import (
    adjust_window,
    collapse,
    cut_rate,
    note_losses,
    pace,
    raise_rate,
)
from commsim.engine.packet.traffic_state import FLOW_ROW
from commsim.engine.packet.transport import TRANSPORT_ROW

LINE = 0.0125  # bytes per ps: 100 Gb/s
GAIN = 1 / 256


def dctcp_rows(**fields: float) -> tuple[Any, Any]:
    flow, transport = np.zeros(1, FLOW_ROW), np.zeros(1, TRANSPORT_ROW)
    flow["threshold"], flow["alpha"], flow["resend"] = np.inf, 1.0, -1
    transport["gain"], transport["max_window"] = 1 / 16, 1000
    for name, value in fields.items():
        flow[name] = value
    return flow[0], transport[0]


def acknowledge(flow: Any, transport: Any, n: int, marked: bool = False) -> None:
    flow["una"] += n
    note_losses(flow, n)
    adjust_window(flow, transport, n, marked)


def test_slow_start_doubles_in_a_round_until_the_first_mark_halves_it() -> None:
    flow, transport = dctcp_rows(window=10.0, fresh=10, round_end=10)
    for _ in range(9):
        acknowledge(flow, transport, 1)
    assert flow["window"] == 19
    flow["fresh"] = 29
    acknowledge(flow, transport, 1, marked=True)
    # the round ended with this mark, one of ten: alpha was 1 and is now 15/16 + 0.1/16
    alpha = 1 + (0.1 - 1) / 16
    assert flow["alpha"] == pytest.approx(alpha)
    assert flow["window"] == flow["threshold"] == pytest.approx(19 * (1 - alpha / 2))


def test_a_round_of_marks_cuts_once_and_the_window_does_not_grow_meanwhile() -> None:
    flow, transport = dctcp_rows(window=20.0, fresh=20, round_end=1000, threshold=10.0)
    acknowledge(flow, transport, 1, marked=True)
    assert flow["window"] == 10
    for k in range(18):
        acknowledge(flow, transport, 1, marked=k % 2 == 0)
    assert flow["window"] == 10
    acknowledge(flow, transport, 1)  # what was sent before the cut is acknowledged
    assert flow["window"] == pytest.approx(10.1)


def test_alpha_follows_the_share_of_marks() -> None:
    flow, transport = dctcp_rows(window=10.0, alpha=0.0, threshold=5.0)
    for _ in range(200):
        flow["round_end"] = flow["fresh"] = flow["una"] + 10
        for k in range(10):
            acknowledge(flow, transport, 1, marked=k < 3)
    assert flow["alpha"] == pytest.approx(0.3, rel=1e-3)


def test_three_repetitions_repeat_the_missing_packet_and_each_further_hole_follows() -> None:
    flow, _ = dctcp_rows(window=20.0, una=5, fresh=25, next=25)
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
    flow, _ = dctcp_rows(window=20.0, una=5, fresh=25, next=25)
    collapse(flow)
    assert (flow["window"], flow["threshold"], flow["recover"]) == (1, 10, 25)
    for _ in range(5):
        note_losses(flow, 0)
    assert (flow["resend"], flow["recovering"]) == (-1, False)


def dcqcn_rows() -> tuple[Any, Any]:
    flow, transport = np.zeros(1, FLOW_ROW), np.zeros(1, TRANSPORT_ROW)
    flow["rate"] = flow["line"] = flow["target"] = LINE
    flow["cap"] = np.inf
    flow["alpha"], flow["alpha_at"] = 1.0, -1
    transport["gain"], transport["n_recovery"], transport["decay_time"], transport["rise_time"] = (
        GAIN,
        5,
        55_000_000,
        55_000_000,
    )
    transport["additive"], transport["hyper"], transport["min_rate"], transport["rise_bytes"] = (
        5e-6,
        5e-5,
        5e-6,
        10_000_000,
    )
    return flow[0], transport[0]


def test_the_first_notification_halves_the_rate_and_a_later_one_by_what_alpha_has_decayed_to() -> None:
    flow, transport = dcqcn_rows()
    cut_rate(flow, transport, 10**9)
    assert flow["rate"] == LINE / 2
    assert flow["target"] == LINE
    assert flow["alpha"] == 1.0
    cut_rate(flow, transport, 10**9 + 20 * 55_000_000 + 1)
    decayed = (1 - GAIN) ** 20
    assert flow["rate"] == pytest.approx(LINE / 2 * (1 - decayed / 2))
    assert flow["alpha"] == pytest.approx(decayed + GAIN * (1 - decayed))


def test_five_rises_go_half_way_back_each_and_then_the_target_grows() -> None:
    flow, transport = dcqcn_rows()
    cut_rate(flow, transport, 0)
    cut_rate(flow, transport, 1)
    target, rate = float(flow["target"]), float(flow["rate"])
    for k in range(1, 6):
        flow["by_time"] = k
        raise_rate(flow, transport)
        rate = (rate + target) / 2
        assert flow["rate"] == pytest.approx(rate)
        assert flow["target"] == target
    flow["by_time"] = 6
    raise_rate(flow, transport)
    assert flow["target"] == pytest.approx(target + transport["additive"])
    flow["by_time"] = flow["by_bytes"] = 7
    raise_rate(flow, transport)
    assert flow["target"] == pytest.approx(target + transport["additive"] + 2 * transport["hyper"])


def test_the_rate_ends_at_the_lines_and_never_falls_below_the_least() -> None:
    flow, transport = dcqcn_rows()
    for k in range(40):
        cut_rate(flow, transport, k)
    assert flow["rate"] == transport["min_rate"]
    for k in range(10_000):
        flow["by_time"] = flow["by_bytes"] = k
        raise_rate(flow, transport)
    assert flow["rate"] == flow["target"] == LINE


def test_packets_are_spaced_by_the_rate_and_every_ten_megabytes_raise_it() -> None:
    flow, transport = dcqcn_rows()
    pace(flow, transport, 1000, 4178)
    assert flow["free_at"] == 0  # at the line's rate the link itself is the pace
    cut_rate(flow, transport, 0)
    pace(flow, transport, 1000, 4178)
    assert flow["free_at"] == 1000 + 4178 / (LINE / 2)
    before = float(flow["rate"])
    for _ in range(10_000_000 // 4178):
        pace(flow, transport, 1000, 4178)
    assert flow["by_bytes"] == 1
    assert flow["rate"] == (before + LINE) / 2
