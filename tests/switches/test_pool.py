"""A switch with values: what leaves it, its exponents, its arithmetic, shared slots, and the worked example."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lossy_job import DOUBLE, LOSE, REPEAT
from lossy_server import LossyServer
from slow_pool import PARENT, Pool
from whole_log import replay

from benchmarks.validation.slots_on_demand import (
    FIRST_WORKERS_FIRST,
    N_FRAGMENTS,
    N_WORKERS,
    on_demand,
    scheduled,
    value,
)
from switch_model.payload import given_payload
from switch_model.system import System
from switch_model.systems.atp import hashed_slots

PLAIN = System("plain", 2, pool_size=2, window=2)
SHARED = replace(PLAIN, versions=1, shared_slots=hashed_slots, server=True, arithmetic="saturate")
choices = st.lists(st.tuples(st.integers(0, 63), st.sampled_from([LOSE, DOUBLE, REPEAT, 3, 4, 5, 6])), max_size=150)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_the_last_child_releases_the_sum_to_all_and_a_late_one_gets_it_alone() -> None:
    pool = Pool(PLAIN, 3)
    assert pool.contribution(1, 0, 0, ints(1, 10), exponent=-3) == []
    assert pool.contribution(1, 0, 2, ints(2, 20), exponent=5) == []
    assert pool.contribution(1, 0, 2, ints(2, 20), exponent=5) == []
    out = pool.contribution(1, 0, 1, ints(3, 30), exponent=1)
    assert [(p.destination, p.values.tolist(), p.exponent) for p in out] == [(c, [6, 60], 5) for c in range(3)]
    again = pool.contribution(1, 0, 2, ints(2, 20), exponent=5)
    assert [(p.destination, p.values.tolist(), p.exponent) for p in again] == [(2, [6, 60], 5)]


def test_the_next_round_forgets_the_sum_and_the_exponent_of_the_one_before() -> None:
    pool = Pool(PLAIN, 1)
    for version, number, exponent in ((0, 7, 9), (1, 5, -2), (0, 3, -4)):
        (packet,) = pool.contribution(0, version, 0, ints(number, number), exponent)
        assert (packet.values.tolist(), packet.exponent) == ([number, number], exponent)


def test_a_switch_below_another_sends_one_packet_up_and_repeats_it_until_the_result_is_there() -> None:
    leaf = Pool(PLAIN, 2, has_parent=True)
    leaf.contribution(0, 0, 0, ints(1, 1))
    (up,) = leaf.contribution(0, 0, 1, ints(2, 2))
    (repeated,) = leaf.contribution(0, 0, 0, ints(1, 1))
    assert (up.destination, repeated.destination) == (PARENT, PARENT)
    assert up.values.tolist() == repeated.values.tolist() == [3, 3]
    down = leaf.result(0, 0, ints(100, 100), exponent=4)
    assert [(p.destination, p.values.tolist(), p.exponent) for p in down] == [(c, [100, 100], 4) for c in (0, 1)]
    (late,) = leaf.contribution(0, 0, 1, ints(2, 2))
    assert (late.destination, late.values.tolist(), late.exponent) == (1, [100, 100], 4)


@pytest.mark.parametrize(("arithmetic", "expected"), [("wrap", -(2**31)), ("saturate", 2**31 - 1)])
def test_registers_overflow_as_the_system_says(arithmetic: str, expected: int) -> None:
    pool = Pool(replace(PLAIN, arithmetic=arithmetic), 2)
    pool.contribution(0, 0, 0, ints(2**31 - 1))
    assert pool.contribution(0, 0, 1, ints(1))[0].values.tolist() == [expected, 0]


def test_two_byte_floats_are_summed_in_four_bytes_and_rounded_when_they_leave() -> None:
    pool = Pool(replace(PLAIN, arithmetic="float", element_bytes=2), 3)
    for child in range(2):
        pool.contribution(0, 0, child, np.float32([256.0, 1.0]))
    out = pool.contribution(0, 0, 2, np.float32([1.0, 2.0**-9]))
    assert out[0].values.tolist() == [512.0, 2.0]  # 513 and 2 + 2**-9 do not fit in 8 bits
    assert pool.registers[0].tolist() == [513.0, 2.0 + 2.0**-9]


def test_a_shared_slot_serves_one_fragment_until_its_result_comes_back() -> None:
    pool = Pool(SHARED, 2)
    assert pool.claim(0, 1, 0b01, ints(1, 1)) == []
    (foreign,) = pool.claim(0, 2, 0b01, ints(5, 5))
    assert (foreign.destination, foreign.collided, foreign.children) == (PARENT, True, 0b01)
    (whole,) = pool.claim(0, 1, 0b10, ints(2, 2))
    assert (whole.values.tolist(), whole.collided, whole.children) == ([3, 3], False, 0b11)
    assert [p.destination for p in pool.acknowledge(0, 2, ints(9, 9))] == [0, 1]
    assert pool.slots["key"][0] == 1
    pool.acknowledge(0, 1, ints(3, 3))
    assert pool.claim(0, 2, 0b10, ints(6, 6)) == []


def test_a_resent_packet_takes_the_partial_sum_with_it_and_frees_the_slot() -> None:
    pool = Pool(SHARED, 3)
    pool.claim(0, 1, 0b001, ints(1, 1))
    (partial,) = pool.claim(0, 1, 0b010, ints(2, 2), resent=True)
    assert (partial.values.tolist(), partial.children) == ([3, 3], 0b011)
    (alone,) = pool.claim(0, 1, 0b010, ints(2, 2), resent=True)
    assert (alone.values.tolist(), alone.children, alone.collided) == ([2, 2], 0b010, False)


@pytest.mark.jit
@given(
    racks=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    slots=st.integers(1, 4),
    n=st.integers(1, 11),
    seed=st.integers(0, 2**32 - 1),
    choices=choices,
)
def test_shared_slots_and_a_server_sum_everything_once_whatever_is_lost_doubled_or_repeated(
    racks: list[int], slots: int, n: int, seed: int, choices: list[tuple[int, int]]
) -> None:
    system = replace(SHARED, pool_size=slots)
    tensor = np.random.default_rng(seed).integers(-(2**27), 2**27, (sum(racks), n), np.int32)
    job = LossyServer(system, tensor, racks)
    job.run(choices)  # raises StuckError if it does not end
    assert job.is_exact()
    assert replay(job.log, given_payload([[tensor]], system), system, job.n_registers, job.n_messages).exact


SUMS = tuple(sum(value(worker, fragment) for worker in range(N_WORKERS)) for fragment in range(N_FRAGMENTS))


def test_slots_on_demand_send_seven_packets_to_the_server_and_seventeen_out_of_switches() -> None:
    assert on_demand(FIRST_WORKERS_FIRST) == (7, 17, SUMS)


def test_a_schedule_of_fragments_sends_three_and_thirteen() -> None:
    assert scheduled(FIRST_WORKERS_FIRST) == (3, 13, SUMS)


def test_slots_on_demand_aggregate_everything_when_workers_are_synchronous() -> None:
    synchronous = tuple((worker, fragment) for fragment in range(N_FRAGMENTS) for worker in range(N_WORKERS))
    assert on_demand(synchronous, acknowledge=True) == (3, 9, SUMS)
