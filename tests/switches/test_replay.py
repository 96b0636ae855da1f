"""The value pass against itself written row by row, on logs that make sense and on logs that do not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_replay import IllegalError, slow_replay
from whole_log import replay

from commsim.core.errors import InputError
from switch_model.payload import Payload, drawn_payload, given_payload
from switch_model.replay import ValuePass, _slack
from switch_model.slot_kernel import ADD, OVERWRITE, READ
from switch_model.slot_sequence import LOG_ROW, RECEIVE
from switch_model.system import System

WRAP = System("wrap", 4, pool_size=4, window=4)
SATURATE = replace(WRAP, arithmetic="saturate")
FLOAT = replace(WRAP, arithmetic="float")
N_REGISTERS, N_MESSAGES = 3, 6


def row(
    action: int, register: int = -1, worker: int = -1, chunk: int = 0, source: int = -1, out: int = -1
) -> tuple[int, ...]:
    return action, register, worker, chunk, source, out


def log_of(*rows: tuple[int, ...]) -> Any:
    return np.array(list(rows), LOG_ROW)


def payload_of(system: System, seed: int) -> Payload:
    """Two jobs, of two workers with tensors of 5 and 4 elements, and of one worker with one of 6."""
    random, limit = np.random.default_rng(seed), 1000 if system.arithmetic == "float" else 2**31
    dtype = np.float32 if system.arithmetic == "float" else np.int32
    draw = lambda *shape: random.integers(-limit, limit, shape).astype(dtype)  # noqa: E731
    return given_payload([[draw(2, 5), draw(2, 4)], [draw(1, 6)]], system)


@st.composite
def logs(draw: Any, legal: bool) -> Any:
    """Rows at random; legal ones make messages in order, and take from those that were made."""
    rows, made = [], 0
    for _ in range(draw(st.integers(0, 25))):
        kind = draw(st.sampled_from([OVERWRITE, ADD, READ, OVERWRITE | READ, ADD | READ, RECEIVE, RECEIVE]))
        worker = draw(st.integers(0, 2))
        chunk = draw(st.integers(0, 1 if worker == 2 else 2))
        register, out = draw(st.integers(0, N_REGISTERS - 1)), -1
        source = draw(st.integers(0, made - 1)) if made and (kind == RECEIVE or draw(st.booleans())) else -1
        if kind == RECEIVE:
            if made:
                rows.append(row(RECEIVE, -1, worker, chunk, source))
            continue
        if kind == READ or source >= 0:
            worker = -1
        if kind == READ:
            source = -1
        if kind & READ:
            if made == N_MESSAGES:
                continue
            out, made = made, made + 1
        rows.append(row(kind, register, worker, chunk, source, out))
    log = log_of(*rows) if rows else np.zeros(0, LOG_ROW)
    if not legal and rows:
        at = draw(st.integers(0, len(rows) - 1))
        field = draw(st.sampled_from(LOG_ROW.names))
        log[at][field] = draw(st.sampled_from([-(2**31), -2, -1, 0, 1, 2, 3, 5, 6, 7, 8, 2**31 - 1]))
    return log


@pytest.mark.slow
@pytest.mark.nojit
@given(log=logs(True) | logs(False), system=st.sampled_from([WRAP, SATURATE, FLOAT]), seed=st.integers(0, 9))
def test_blocks_give_what_single_elements_give_and_nonsense_is_refused_where_it_stands(
    log: Any, system: System, seed: int
) -> None:
    payload = payload_of(system, seed)
    try:
        wrong, missing, added = slow_replay(log, payload, system, N_REGISTERS, N_MESSAGES)
    except IllegalError as error:
        with pytest.raises(InputError, match=f"row {error.args[0]} of the log"):
            replay(log, payload, system, N_REGISTERS, N_MESSAGES)
        return
    done = replay(log, payload, system, N_REGISTERS, N_MESSAGES)
    assert done.wrong_of_worker.tolist() == wrong
    assert done.missing_of_worker.tolist() == missing
    assert (done.elements_added, done.exact) == (added, not sum(wrong) and not sum(missing))
    assert done.wrong_elements == sum(wrong)
    assert done.missing_elements == sum(missing)


@pytest.mark.nojit
@given(log=logs(True), cuts=st.sets(st.integers(0, 25)), system=st.sampled_from([WRAP, SATURATE, FLOAT]))
def test_pieces_of_a_log_give_what_the_whole_gives(log: Any, cuts: set[int], system: System) -> None:
    payload = payload_of(system, 1)
    whole, values = replay(log, payload, system, N_REGISTERS, N_MESSAGES), ValuePass(payload, system, N_REGISTERS)
    ends = sorted({min(cut, len(log)) for cut in (*cuts, 25)})
    for first, end in zip([0, *ends], ends, strict=False):
        n_made = int((log["out_message"][:end] >= 0).sum())
        later = np.unique(log["in_message"][end:])
        values.carry_out(log[first:end], n_made, later[(later >= 0) & (later < n_made)])
    pieces = values.outcome()
    for name in ("wrong_of_worker", "missing_of_worker", "elements_added", "exact"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name))
    assert pieces.messages_held <= whole.messages_held


@pytest.mark.nojit
def test_messages_that_no_later_row_may_take_are_forgotten() -> None:
    values = ValuePass(payload_of(WRAP, 0), WRAP, N_REGISTERS)
    for message in range(40):  # one is always held, and taken in the next piece
        rows = [row(OVERWRITE | READ, 0, 0, 0, -1, message)]
        rows += [row(RECEIVE, -1, 0, 0, message - 1)] if message else []
        values.carry_out(log_of(*rows), message + 1, np.array([message], np.int32))
    assert values.outcome().messages_held == 2
    with pytest.raises(InputError, match=r"row 79 of the log.*not made before"):
        values.carry_out(log_of(row(RECEIVE, -1, 0, 0, 38)), 40)


MAKES = row(OVERWRITE | READ, 0, 0, 0, -1, 0)  # message 0 from a worker's chunk


# Each is wrong in one field only.
@pytest.mark.nojit
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (row(0, 0, 0), "needs OVERWRITE or ADD"),
        (row(-1, 0, 0), "needs OVERWRITE or ADD"),
        (row(OVERWRITE | ADD, 0, 0), "needs OVERWRITE or ADD"),
        (row(RECEIVE | ADD, 0, 0), "needs OVERWRITE or ADD"),
        (row(ADD, -1, 0), "register"),
        (row(ADD, N_REGISTERS, 0), "register"),
        (row(ADD, 0, 0, 0, 0), "and not both"),
        (row(ADD, 0, -1, 0, -1), "and not both"),
        (row(RECEIVE, -1, -1, 0, 0), "and not both"),
        (row(RECEIVE, -1, 0, 0, -1), "and not both"),
        (row(READ, 0, -1, 0, 0, 1), "and not both"),
        (row(ADD, 0, 3, 0), "names a worker"),
        (row(ADD, 0, 2, 2), "names a worker"),
        (row(ADD, 0, 2, -1), "names a worker"),
        (row(ADD, 0, -1, 0, 1), "message"),
        (row(ADD, 0, -1, 0, N_MESSAGES), "message"),
        (row(ADD | READ, 0, 0, 0, -1, 0), "makes a message"),
        (row(ADD | READ, 0, 0, 0, -1, N_MESSAGES), "makes a message"),
        (row(ADD | READ, 0, 0, 0, -1, -1), "makes a message"),
    ],
)
def test_a_row_that_is_wrong_in_one_field_is_refused_for_it(wrong: tuple[int, ...], why: str) -> None:
    payload = payload_of(WRAP, 0)
    replay(log_of(MAKES), payload, WRAP, N_REGISTERS, N_MESSAGES)
    with pytest.raises(InputError, match=f"row 1 of the log.*{why}"):
        replay(log_of(MAKES, wrong), payload, WRAP, N_REGISTERS, N_MESSAGES)


def sum_of(n_workers: int, receivers: int) -> Any:
    """Log of one chunk, summed once and received by some."""
    rows = [row(ADD, 0, w, 0) for w in range(n_workers)]
    rows[0] = row(OVERWRITE, 0, 0, 0)
    rows += [row(READ, 0, -1, 0, -1, 0), *(row(RECEIVE, -1, w, 0, 0) for w in range(receivers))]
    return log_of(*rows)


@pytest.mark.nojit
def test_a_worker_that_never_received_makes_the_run_inexact() -> None:
    payload = given_payload([[np.arange(6, dtype=np.int32).reshape(2, 3)]], WRAP)
    assert replay(sum_of(2, 2), payload, WRAP, 1, 1).exact
    done = replay(sum_of(2, 1), payload, WRAP, 1, 1)
    assert (done.exact, done.wrong_elements, done.missing_elements) == (False, 0, 3)


@pytest.mark.nojit
def test_what_is_received_last_counts() -> None:
    payload = given_payload([[np.arange(1, 5, dtype=np.int32).reshape(1, 4)]], WRAP)
    twice = [row(OVERWRITE, 0, 0, 0), row(READ, 0, out=0), row(ADD | READ, 0, 0, 0, -1, 1)]
    right, doubled = row(RECEIVE, -1, 0, 0, 0), row(RECEIVE, -1, 0, 0, 1)
    assert replay(log_of(*twice, doubled, right), payload, WRAP, 1, 2).exact
    assert replay(log_of(*twice, right, doubled), payload, WRAP, 1, 2).wrong_elements == 4


@pytest.mark.nojit
def test_a_saturated_sum_is_wrong_although_the_log_is_right() -> None:
    payload = given_payload([[np.array([[2**31 - 1, 1], [1, 1]], np.int32)]], SATURATE)
    assert replay(sum_of(2, 2), payload, SATURATE, 1, 1).wrong_elements == 2
    payload = given_payload([[np.array([[2**31 - 1, 1], [1, 1]], np.int32)]], WRAP)
    assert replay(sum_of(2, 2), payload, WRAP, 1, 1).exact


@pytest.mark.parametrize("element_bytes", [4, 2])
def test_real_floats_are_right_within_rounding_and_wrong_beyond_it(element_bytes: int) -> None:
    system = replace(FLOAT, element_bytes=element_bytes)
    values = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    payload = given_payload([[values]], system)
    assert not payload.integral
    assert replay(sum_of(5, 5), payload, system, 1, 1).exact
    lacking = np.delete(sum_of(5, 5), 3)
    assert replay(lacking, payload, system, 1, 1).wrong_elements == 20


def test_a_float_sum_that_lacks_a_small_integer_is_wrong() -> None:
    values = np.array([[2.0**23], [1.0]], np.float32)
    payload = given_payload([[values]], FLOAT)
    assert payload.integral
    assert replay(sum_of(2, 2), payload, FLOAT, 1, 1).exact
    assert replay(np.delete(sum_of(2, 2), 1), payload, FLOAT, 1, 1).wrong_elements == 2


@pytest.mark.parametrize("arithmetic", ["wrap", "saturate", "float"])
@pytest.mark.parametrize("element_bytes", [4, 2])
def test_drawn_tensors_differ_between_workers_and_chunks_and_sum_exactly(arithmetic: str, element_bytes: int) -> None:
    system = replace(WRAP, arithmetic=arithmetic, element_bytes=element_bytes, elements=64)
    n_workers, n_chunks = 8, 5
    payload = drawn_payload([(n_workers, (64 * 3, 100))], system, seed=3)
    blocks = {payload.block(w, c, 64).tobytes() for w in range(n_workers) for c in range(n_chunks)}
    assert len(blocks) == n_workers * n_chunks
    assert len(payload.block(0, 4, 64)) == 36
    assert replay(sum_of(n_workers, n_workers), payload, system, 1, 1).wrong_elements == 0
    swapped = sum_of(n_workers, n_workers)
    swapped["chunk"][n_workers - 1] = 1  # one worker's next chunk
    assert replay(swapped, payload, system, 1, 1).wrong_elements > 0


def test_a_tensor_larger_than_the_memory_it_takes_wraps_around_without_repeating_soon() -> None:
    payload = drawn_payload([(2, (2**28,))], replace(WRAP, elements=256))
    assert payload.values.nbytes < 2**25
    last = payload.block(0, 2**20 - 1, 256)
    assert len(last) == 256
    assert not np.array_equal(last, payload.block(0, 2**20 - 1 - 2**14, 256))


def test_messages_are_kept_only_while_somebody_is_to_read_them() -> None:
    rows = []
    for chunk in range(50):
        rows += [row(OVERWRITE | READ, 0, 0, chunk, -1, 2 * chunk), row(READ, 0, -1, 0, -1, 2 * chunk + 1)]
        rows += [row(RECEIVE, -1, 0, chunk, 2 * chunk)]
    payload = given_payload([[np.arange(200, dtype=np.int32).reshape(1, 200)]], WRAP)
    done = replay(log_of(*rows), payload, WRAP, 1, 100)
    assert done.exact
    assert done.messages_held == 1


@pytest.mark.nojit
def test_a_message_stays_until_its_last_reader_has_read() -> None:
    rows = [row(OVERWRITE, 0, 0, 0), row(ADD | READ, 0, 1, 0, -1, 0), row(RECEIVE, -1, 0, 0, 0)]
    rows += [row(OVERWRITE, 1, 0, 1), row(ADD | READ, 1, 1, 1, -1, 1), row(RECEIVE, -1, 1, 0, 0)]
    rows += [row(RECEIVE, -1, w, 1, 1) for w in range(2)]
    payload = given_payload([[np.arange(16, dtype=np.int32).reshape(2, 8)]], WRAP)
    done = replay(log_of(*rows), payload, WRAP, 2, 2)
    assert (done.exact, done.messages_held) == (True, 2)


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ([], "at least 1 tensor"),
        ([[]], "at least 1 tensor"),
        ([[np.zeros((2, 0), np.int32)]], "not empty"),
        ([[np.zeros((2, 3), np.float32)]], "needs int32"),
        ([[np.zeros(3, np.int32)]], "n_workers, n"),
        ([[np.zeros((2, 3), np.int32), np.zeros((3, 3), np.int32)]], "as many workers"),
    ],
)
def test_tensors_of_the_wrong_kind_are_refused(jobs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        given_payload(jobs, WRAP)


def test_infinite_tensors_and_too_many_workers_for_exact_sums_are_refused() -> None:
    with pytest.raises(InputError, match="element 1 of the tensors is NaN"):
        given_payload([[np.array([[0.0, np.nan]], np.float32)]], FLOAT)
    with pytest.raises(InputError, match="at least 1 worker"):
        drawn_payload([(0, (5,))], WRAP)
    with pytest.raises(InputError, match="are not exact"):
        drawn_payload([(200, (5,))], replace(FLOAT, element_bytes=2))
    with pytest.raises(InputError, match="sums over 200 workers"):  # the largest job decides
        drawn_payload([(2, (5,)), (200, (5,))], replace(FLOAT, element_bytes=2))


def test_a_log_of_other_rows_is_refused() -> None:
    with pytest.raises(InputError, match="LOG_ROW"):
        replay(np.zeros(3), payload_of(WRAP, 0), WRAP, 1, 1)


@pytest.mark.parametrize("n", [1, 2, 8])
def test_sums_of_floats_may_be_off_by_one_rounding_for_each_addition(n: int) -> None:
    workers = np.array([(2, 2 + n), (0, 1)], [("first", np.int64), ("end", np.int64)])
    assert _slack(workers, 0) == (n - 1) * 2.0**-23
    assert _slack(workers, 1) == pytest.approx((n - 1) * 2.0**-23 + 2.0**-8, rel=1e-2)
