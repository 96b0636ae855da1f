"""Blocks that step along orders of chunks: the same as written out one by one, and within the data."""

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.checking.check import check
from commsim.core.checking.check_compact import _law
from commsim.core.data_order.chunk_orders import ChunkOrders
from commsim.core.errors import ScheduleError
from commsim.core.program import Program
from commsim.core.schedule import SCRATCH, Schedule
from commsim.engine.simultaneous.begun_together import unrolled


def gathered(orders: np.ndarray, width: int = 1, **changed: object) -> Schedule:
    """An all-gather over rings in any orders, a channel each; columns of its hop may be changed."""
    n_channels, n = orders.shape
    channel, place = (index.ravel() for index in np.indices(orders.shape))
    p = Program(n, n * n_channels * width, n_scratch=n * n_channels * width)
    whole = n_channels * width
    columns: dict[str, object] = {
        "chunk": orders[channel, place] * whole + channel * width, "src": orders[channel, place],
        "dst": orders[channel, (place + 1) % n], "channel": channel, "count": width,
    }  # fmt: skip
    with p.repeat(n - 1, chunk=-whole, orders=orders):
        p.copy(**(columns | changed))  # type: ignore[arg-type]
    return p.build("turning", "all_gather")


def drawn_orders(n: int, n_channels: int, seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return np.array([draw.permutation(n) for _ in range(n_channels)])


@given(n=st.integers(2, 9), n_channels=st.integers(1, 3), width=st.integers(1, 3), seed=st.integers(0, 99))
def test_rings_in_any_order_are_those_written_out_and_are_proved(
    n: int, n_channels: int, width: int, seed: int
) -> None:
    orders = drawn_orders(n, n_channels, seed)
    schedule, p = gathered(orders, width), Program(n, n * n_channels * width, n_scratch=n * n_channels * width)
    for round_ in range(n - 1):
        rows = [(orders[c, i], orders[c, (i + 1) % n], orders[c, (i - round_) % n], c) for c in range(n_channels)
                for i in range(n)]  # fmt: skip
        src, dst, home, channel = np.array(rows).T
        chunk = home * n_channels * width + channel * width
        p.copy(chunk, src=src, dst=dst, channel=channel, count=width)
    assert np.array_equal(schedule.expand(), p.build().expand())
    assert np.array_equal(np.concatenate(list(schedule.rounds())), schedule.expand())
    assert sum(len(block.body) for block in schedule.blocks) == n * n_channels
    check(schedule)


@pytest.mark.parametrize(
    ("parts", "of_row", "message"),
    [
        ([[0, 1, 1]], [0], "must hold each part 0..2 once"),
        ([[0, 3, 1]], [0], "must hold each part 0..2 once"),
        ([[0, 1]], [1], "rows follow orders 0..0, got 1"),
        ([0, 1], [0], "orders of chunks are rows of parts"),
    ],
)
def test_orders_that_are_none_are_refused(parts, of_row, message):
    with pytest.raises(ScheduleError, match=re.escape(message)):
        ChunkOrders(np.array(parts), np.array(of_row))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dst_buffer": SCRATCH}, "are of the data"),
        ({"chunk": 1, "count": 2}, "must be within parts of 2 chunks"),
    ],
)
def test_messages_that_would_leave_their_parts_are_refused(changed, message):
    with pytest.raises(ScheduleError, match=message):
        gathered(drawn_orders(4, 1, 0), 2, **changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"step": (0, 0, -3, -2)}, "must be within parts of 2 chunks"),
        ({"xor": True}, "for steps that are added"),
        ({"orders": ChunkOrders(np.array([[0, 1, 2]]), np.zeros(4, int))}, "hold 3 parts, which 8 chunks"),
        ({"orders": ChunkOrders(np.array([[0, 1]]), np.zeros(3, int))}, "must be given for 4 transfers, got 3"),
    ],
)
def test_blocks_that_do_not_fit_their_orders_are_refused(changed, message):
    (block,) = gathered(drawn_orders(4, 1, 0), 2).blocks
    with pytest.raises(ScheduleError, match=message):
        Schedule("changed", "custom", 4, 0, 8, 0, (dataclasses.replace(block, **changed),))


def test_other_orders_are_another_schedule_and_another_law():
    schedule = gathered(np.array([[0, 1, 2, 3]]))
    (block,) = schedule.blocks
    turned = dataclasses.replace(block, orders=ChunkOrders(np.array([[1, 0, 2, 3]]), block.orders.of_row))
    other = dataclasses.replace(schedule, blocks=(turned,))
    assert other != schedule
    assert _law(turned, other) != _law(block, schedule)
    with pytest.raises(ScheduleError):
        check(other)


def test_messages_along_an_order_are_not_taken_for_some_that_start_together():
    assert unrolled(gathered(drawn_orders(4, 2, 1))) is None
