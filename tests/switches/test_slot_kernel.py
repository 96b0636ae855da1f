"""The rule against itself in words, and against an adversary who loses, doubles and repeats what he likes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lossy_job import DOUBLE, LOSE, REPEAT, LossyJob, StuckError
from numpy.typing import NDArray
from slow_rule import SlowShared, SlowSwitch
from whole_log import replay

from switch_model import slot_kernel as rule
from switch_model.payload import given_payload
from switch_model.system import System

BITS = {
    "overwrite": rule.OVERWRITE, "add": rule.ADD, "read": rule.READ, "all": rule.ALL, "sender": rule.SENDER,
    "up": rule.UP, "free": rule.FREE, "collision": rule.COLLISION, "duplicate": rule.DUPLICATE,
}  # fmt: skip
choices = st.lists(st.tuples(st.integers(0, 63), st.sampled_from([LOSE, DOUBLE, REPEAT, 3, 4, 5, 6])), max_size=150)


def words(action: int) -> set[str]:
    assert not action & ~sum(BITS.values())
    return {word for word, bit in BITS.items() if action & bit}


def small_system(slots: int, elements: int = 2, **more: object) -> System:
    return replace(System("small", elements, pool_size=slots, window=slots), **more)  # type: ignore[arg-type]


def tensors_of(n_workers: int, sizes: list[int], seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(-(2**31), 2**31, (n_workers, n), np.int32) for n in sizes]


@given(data=st.data(), fan_in=st.integers(1, 4), has_parent=st.booleans(), n_slots=st.integers(1, 2))
def test_the_kernel_does_what_the_words_say_whatever_arrives(
    data: st.DataObject, fan_in: int, has_parent: bool, n_slots: int
) -> None:
    slow, slots = SlowSwitch(n_slots, fan_in, has_parent), np.zeros(2 * n_slots, rule.SLOT_ROW)
    packet = st.tuples(st.integers(0, n_slots - 1), st.integers(0, 1), st.integers(-1, fan_in - 1))
    for slot, version, child in data.draw(st.lists(packet, max_size=60)):
        at = 2 * slot + version
        if child < 0:
            assert words(rule.take_result(slots, at)) == slow.take_result(slot, version)
        else:
            action = rule.contribute(slots, at, at ^ 1, child, fan_in, has_parent)
            assert words(action) == slow.contribute(slot, version, child)


@given(data=st.data(), everyone=st.sets(st.sampled_from([0, 1, 63, 64, 127, 128, 190]), min_size=1, max_size=4))
def test_shared_slots_do_what_the_words_say_whatever_arrives(data: st.DataObject, everyone: set[int]) -> None:
    slow, slots = SlowShared(2, everyone), np.zeros(2, rule.SLOT_ROW)
    sets = np.zeros((4, 3), np.uint64)  # of both slots, the packet and all workers, in words of 64
    _put(sets, 3, everyone)
    some = st.sets(st.sampled_from(sorted(everyone)), min_size=1)
    packet = st.tuples(st.integers(0, 1), st.integers(1, 3), some, st.sampled_from(["new", "new", "again", "result"]))
    for slot, key, workers, kind in data.draw(st.lists(packet, max_size=60)):
        if kind == "result":
            assert words(rule.release(slots, slot, key, sets, slot)) == slow.release(slot, key)
        else:
            _put(sets, 2, workers)
            before = slow.workers[slot] if slow.owner[slot] == key else set()
            action = rule.claim(slots, slot, key, sets, slot, 2, 3, kind == "again")
            expected = slow.claim(slot, key, workers, kind == "again")
            assert words(action) == expected
            taken = expected & {"overwrite", "add", "duplicate"}
            assert _workers(sets, 2) == (workers | before if taken else workers)
        assert [_workers(sets, i) for i in (0, 1)] == slow.workers


def _put(sets: NDArray[np.uint64], row: int, workers: set[int]) -> None:
    rule.clear(sets, row)
    for worker in workers:
        sets[row, worker // 64] |= np.uint64(1 << worker % 64)


def _workers(sets: NDArray[np.uint64], row: int) -> set[int]:
    return {64 * i + bit for i, word in enumerate(sets[row].tolist()) for bit in range(64) if word >> bit & 1}


def test_the_sixty_fourth_child_counts_like_any_other() -> None:
    slots = np.zeros(2, rule.SLOT_ROW)
    actions = [rule.contribute(slots, 0, 1, child, 64, False) for child in range(64)]
    assert words(actions[0]) == {"overwrite"}
    assert all(words(action) == {"add"} for action in actions[1:-1])
    assert words(actions[-1]) == {"add", "read", "all"}
    assert words(rule.contribute(slots, 0, 1, 63, 64, False)) == {"duplicate", "read", "sender"}
    assert slots["seen"][0] == np.uint64(2**64 - 1)


def test_a_duplicate_is_dropped_before_completion_and_answered_to_its_sender_after() -> None:
    slots = np.zeros(2, rule.SLOT_ROW)
    rule.contribute(slots, 0, 1, 0, 2, False)
    assert words(rule.contribute(slots, 0, 1, 0, 2, False)) == {"duplicate"}
    assert words(rule.contribute(slots, 0, 1, 1, 2, False)) == {"add", "read", "all"}
    assert words(rule.contribute(slots, 0, 1, 0, 2, False)) == {"duplicate", "read", "sender"}


@pytest.mark.jit
@given(
    racks=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    slots=st.integers(1, 3),
    sizes=st.lists(st.integers(1, 13), min_size=1, max_size=3),
    seed=st.integers(0, 2**32 - 1),
    choices=choices,
)
def test_every_element_is_summed_exactly_once_whatever_is_lost_doubled_or_repeated(
    racks: list[int], slots: int, sizes: list[int], seed: int, choices: list[tuple[int, int]]
) -> None:
    system, tensors = small_system(slots), tensors_of(sum(racks), sizes, seed)
    job = LossyJob(system, tensors, racks)
    job.run(choices)  # raises StuckError if it does not end
    assert job.is_exact()
    done = replay(job.log, given_payload([tensors], system), system, job.n_registers, job.n_messages)
    assert done.exact
    assert (done.wrong_elements, done.missing_elements) == (0, 0)


@pytest.mark.jit
@given(
    racks=st.lists(st.integers(1, 3), min_size=1, max_size=2),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    choices=choices,
    without=st.sampled_from(["seen_check", "continued_slots", "second_version"]),
)
def test_the_log_tells_whether_a_job_with_a_rule_left_out_was_right(
    racks: list[int], sizes: list[int], choices: list[tuple[int, int]], without: str
) -> None:
    job, done = run_without(without, racks, sizes, choices)
    assert done == job.is_exact()


def run_without(
    without: str, racks: list[int], sizes: list[int], choices: list[tuple[int, int]]
) -> tuple[LossyJob, bool]:
    system = small_system(1, versions=1 if without == "second_version" else 2)
    tensors = tensors_of(sum(racks), sizes, 1)
    job = LossyJob(
        system, tensors, racks,
        seen_check=without != "seen_check", continued_slots=without != "continued_slots",
    )  # fmt: skip
    try:
        job.run(choices)
    except StuckError:
        assert without != "seen_check"
    done = replay(job.log, given_payload([tensors], system), system, job.n_registers, job.n_messages)
    return job, done.exact


MUTATIONS = {
    # The first worker's packet comes twice before the second worker's, and completes the slot with itself.
    "seen_check": ([4], [(0, DOUBLE), (0, 3)]),
    # The second tensor starts at the slot and version in which the first one ended.
    "continued_slots": ([2, 2], []),
    # The second packet of a slot looks like the first one repeated.
    "second_version": ([4], []),
}


@pytest.mark.parametrize("without", MUTATIONS)
def test_a_rule_left_out_makes_exact_false(without: str) -> None:
    sizes, what = MUTATIONS[without]
    job, exact = run_without(without, [2], sizes, what)
    assert not exact
    assert not job.is_exact()
    job, exact = run_without("nothing", [2], sizes, what)
    assert exact
    assert job.is_exact()
