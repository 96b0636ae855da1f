import dataclasses
import threading

import numeric_run as reference
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thread_transport import ThreadTransport, World

from collectives import COLLECTIVES
from commsim.core.errors import BackendError
from commsim.core.operations import OPERATIONS
from commsim.core.program import Program
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.real import busy, validate
from commsim.real.exact_numbers import expected, fill
from commsim.real.measure import measure_schedule, timed, usable_elements
from commsim.real.steps import SHORT_TIMES
from commsim.real.validate import ValidationRow, alike, errors_of, measure_rows, merge, summary_of


def test_warm_up_is_not_timed_and_every_iteration_starts_from_a_reset() -> None:
    calls: list[str] = []
    samples = timed(
        ThreadTransport(World(1), 0), lambda: calls.append("run"), lambda: calls.append("reset"), warmup=2, iterations=3
    )
    assert calls == ["reset", "run"] * 5
    assert samples.shape == (3,)


def test_a_sample_is_the_time_of_the_slowest_rank() -> None:
    import time

    def program(transport: ThreadTransport) -> np.ndarray:
        return timed(transport, lambda: time.sleep(0.02 * transport.rank), lambda: None, 0, 2)

    first, second = World(2).run(program)
    np.testing.assert_array_equal(first, second)
    assert (first >= 0.02).all()


def test_a_right_schedule_has_nothing_wrong_and_a_broken_one_is_found() -> None:
    good = COLLECTIVES["ring_all_reduce"].build(3)
    p = Program(3, n_chunks=3)
    p.copy([0, 1, 2], src=[0, 1, 2], dst=[1, 2, 0])
    bad = p.build("bad", "all_reduce")

    def wrong(schedule: Schedule) -> float:
        results = World(3).run(lambda t: measure_schedule(t, schedule, 600, warmup=0, iterations=1))
        return {r.counters["wrong"] for r in results}.pop()

    assert wrong(good) == 0
    assert wrong(bad) > 0


def test_sizes_are_rounded_down_to_equal_blocks_only_where_blocks_must_be_equal() -> None:
    assert usable_elements(COLLECTIVES["ring_all_reduce"].build(3), 1024) == 256
    assert usable_elements(COLLECTIVES["ring_all_gather"].build(3), 1024) == 255
    assert usable_elements(COLLECTIVES["ring_all_gather"].build(3), 4) == 3
    assert usable_elements(COLLECTIVES["ring_all_reduce"].build(3), 4) == 1


def result(size: float, *samples: float, wrong: float = 0) -> Result:
    middle = float(np.median(samples))
    return Result("a", "all_reduce", "mpi", 2, size, middle, middle, samples=samples, counters={"wrong": wrong})


def test_only_large_rows_on_cores_of_their_own_count() -> None:
    rows = [
        ValidationRow(result(65536, 1.0), None, result(65536, 1.1), False),
        ValidationRow(result(65536, 1.0), None, result(65536, 0.7), False),
        ValidationRow(result(1 << 20, 1.0), None, None, False),
        ValidationRow(result(32768, 1.0), None, result(32768, 9.0), False),
    ]
    assert errors_of(rows, large=True) == pytest.approx([0.1, 0.3])
    assert errors_of(rows, large=False) == pytest.approx([8.0])
    assert [row.counts for row in rows] == [True, True, False, True]
    assert not errors_of([dataclasses.replace(row, oversubscribed=True) for row in rows], large=True)


def test_rows_of_the_same_steps_are_the_noise_that_no_prediction_gets_below() -> None:
    same = [ValidationRow(result(65536, time), None, result(65536, 1.0), False) for time in (1.0, 1.1, 0.8)]
    other = ValidationRow(result(65536, 3.0), None, result(65536, 2.0), False)
    small = [ValidationRow(result(64, time), None, result(64, 1.0), False) for time in (1.0, 5.0)]
    noise = alike([*same, other, *small])
    assert noise == pytest.approx([1 - 0.95, 1 - 0.9 / 1.1, 1.05 / 0.8 - 1])
    assert any(line.startswith("noise: 3 of") for line in summary_of(same))
    assert not any("noise" in line for line in summary_of([same[0], other]))


def test_a_row_says_whether_its_median_lies_in_the_interval_of_the_prediction() -> None:
    for interval, wanted in ((None, None), ((0.5, 1.5), True), ((1.1, 1.5), False)):
        row = ValidationRow(result(8, 1.0), None, dataclasses.replace(result(8, 1.2), interval=interval), False)
        assert row.is_inside is wanted
        assert row.json()["low_s"] == (interval[0] if interval else None)


@pytest.mark.parametrize(("shares", "n_kept"), [((0.0, 0.5, 0.0, 0.0), 3), ((0.5, 0.5, 0.5, 0.0), 4)])
def test_disturbed_passes_are_left_out_unless_most_are_disturbed(monkeypatch, shares, n_kept) -> None:
    given = iter(shares)

    class Meter:
        def __init__(self, transport) -> None:
            pass

        def share(self) -> float:
            return next(given)

    monkeypatch.setattr(validate, "Busy", Meter)
    transport = ThreadTransport(World(1), 0)
    schedule = COLLECTIVES["ring_all_gather"].build(1)
    (row,) = measure_rows(transport, [schedule], [1024], lambda *_: None, native=False, warmup=0, iterations=4)
    assert len(row.ours.samples) == n_kept * SHORT_TIMES


def test_what_comes_before_a_pass_is_called_once_for_each() -> None:
    calls: list[int] = []
    schedule = COLLECTIVES["ring_all_gather"].build(2)
    World(2).run(
        lambda t: measure_rows(
            t, [schedule], [1024], lambda *_: None, native=False, warmup=0, iterations=3,
            before_pass=lambda: calls.append(t.rank),
        )
    )  # fmt: skip
    assert sorted(calls) == [0, 0, 0, 1, 1, 1]


def test_rows_so_far_are_kept_by_rank_0_after_each_pass_but_the_last() -> None:
    kept: list[tuple[int, int, list[int], Result | None]] = []
    schedule = COLLECTIVES["ring_all_gather"].build(2)

    def keep(number: int, rows: list[ValidationRow]) -> None:
        kept.append((number, len(rows), [len(row.ours.samples) for row in rows], rows[0].predicted))

    World(2).run(
        lambda t: measure_rows(
            t, [schedule], [1024, 2048], lambda _, n: result(n, 1.0), native=False, warmup=0, iterations=3,
            keep=keep if t.rank == 0 else None,
        )
    )  # fmt: skip
    assert kept == [(n, 2, [n * SHORT_TIMES] * 2, None) for n in (1, 2)]


@pytest.mark.parametrize(
    ("cores_of", "shared"), [(([0], [1]), False), (([0], [0]), True), (([3], [0, 1, 2, 3]), False)]
)
def test_ranks_that_are_bound_to_cores_of_their_own_share_none(monkeypatch, cores_of, shared) -> None:
    found = threading.local()
    monkeypatch.setattr(validate.os, "sched_getaffinity", lambda _: set(found.cores))

    def program(transport: ThreadTransport) -> bool:
        found.cores, transport.ranks_per_host = cores_of[transport.rank], 2
        return validate.oversubscribed(transport)

    assert World(2).run(program) == [shared] * 2


def test_passes_are_pooled_and_the_worst_count_of_wrong_elements_is_kept() -> None:
    merged = merge([result(8, 1.0, 2.0), result(8, 9.0, wrong=4)])
    assert merged.samples.tolist() == [1.0, 2.0, 9.0]
    assert merged.time == 2.0
    assert merged.counters == {"wrong": 4}


def test_predictions_are_asked_for_on_rank_0_only_and_for_the_size_that_was_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(busy, "QUIET", np.inf)  # a machine that is never disturbed
    asked: list[tuple[str, float]] = []

    def predict(schedule: Schedule, n_bytes: float) -> Result:
        asked.append((schedule.name, n_bytes))
        return result(n_bytes, 1.0)

    schedule = COLLECTIVES["ring_all_gather"].build(3)
    rows, _, others = World(3).run(
        lambda t: measure_rows(t, [schedule], [1024], predict, native=False, warmup=0, iterations=4)
    )
    assert asked == [("ring_all_gather", 255 * 4)]
    assert rows[0].predicted == result(255 * 4, 1.0)
    assert others[0].predicted is None
    assert len(rows[0].ours.samples) == 4 * SHORT_TIMES


@given(
    operation=st.sampled_from(sorted(OPERATIONS)),
    n_ranks=st.integers(1, 9),
    blocks=st.integers(1, 12),
    extra=st.integers(0, 8),
    data=st.data(),
)
def test_what_is_expected_is_what_the_operation_gives_on_the_filled_inputs(
    operation: str, n_ranks: int, blocks: int, extra: int, data: st.DataObject
) -> None:
    promise = OPERATIONS[operation]
    wanted = {"none": 0, "grid": 1, "ranks": n_ranks, "pairs": n_ranks**2, "runs": 0}[promise.layout]
    layout = tuple(
        data.draw(st.lists(st.integers(0, 3), min_size=wanted, max_size=wanted).filter(any)) if wanted else []
    )
    layout = (n_ranks,) if promise.layout == "grid" else layout
    if promise.layout == "runs":
        rank = st.integers(0, n_ranks - 1)
        run = st.tuples(rank, rank, st.integers(0, 3), st.integers(1, 3))
        layout = tuple(number for one in data.draw(st.lists(run, min_size=1, max_size=6)) for number in one)
    chunks = promise.least_chunks(n_ranks, layout)
    n = blocks * chunks + (0 if chunks > 1 else extra)
    root = data.draw(st.integers(0, n_ranks - 1))
    inputs = np.stack([fill(r, 0, n, "int64") for r in range(n_ranks)])
    for rank, (part, values) in enumerate(reference.expected(operation, inputs, root, layout)):
        got_part, got = expected(operation, n_ranks, rank, root, n, "int64", layout)
        np.testing.assert_array_equal(got, values)
        assert np.arange(n)[got_part].tolist() == np.arange(n)[part].tolist()


def test_the_inputs_of_two_ranks_and_of_shifted_places_differ() -> None:
    first = fill(0, 0, 100, "float32")
    assert (first != fill(1, 0, 100, "float32")).all()
    for shift in (1, 2, 4, 8, 16, 32, 64):
        assert (first[shift:] != first[:-shift]).all()


def test_a_custom_schedule_promises_nothing() -> None:
    with pytest.raises(BackendError, match="nothing is known about the result of custom"):
        expected("custom", 2, 0, 0, 4, "float32")
