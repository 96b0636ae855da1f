import dataclasses

import numpy as np

from collectives.dense.ring import ring_all_reduce
from commsim.core.program import Program
from commsim.core.schedule import Block, Schedule
from commsim.formats.msccl.from_schedule import algorithm_of
from commsim.formats.msccl.to_schedule import schedule_of_algorithm
from commsim.pages.rows.schedules_beside import compare_schedules


def star(n_ranks: int) -> Schedule:
    program = Program(n_ranks, n_chunks=1)
    for rank in range(1, n_ranks):
        program.reduce(0, src=rank, dst=0)
    for rank in range(1, n_ranks):
        program.copy(0, src=0, dst=rank)
    return program.build("star", "all_reduce")


def test_what_msccl_brings_back_is_equal_but_for_the_order_within_a_hop():
    given = star(8)
    assert compare_schedules(given, given) == ("the schedules are equal", {})
    ring = ring_all_reduce(8)
    turned = ring.expand().copy()
    turned[:8] = turned[7::-1]
    other = dataclasses.replace(ring, blocks=(Block(turned, ring.n_hops),))
    same = "the schedules are equal but for the order of transfers within a hop"
    assert compare_schedules(ring, other) == (same, {})
    assert compare_schedules(given, schedule_of_algorithm(algorithm_of(given)[0]))[1] == {}


def test_what_differs_is_named_with_the_part_of_the_size_that_pairs_send():
    said, differs = compare_schedules(star(4), ring_all_reduce(4))
    assert said == "the schedules differ"
    assert differs["n_chunks"] == (1, 4)
    assert differs["n_transfers"] == (6, 24)
    assert differs["sent 2:0"] == (1.0, 0.0)
    assert differs["sent 1:2"] == (0.0, 6 / 4)


def test_schedules_that_send_as_much_differ_in_their_transfers():
    given = star(4)
    body = given.expand().copy()
    body["channel"] = np.arange(len(body)) % 2
    other = dataclasses.replace(given, blocks=(Block(body, given.n_hops),))
    assert compare_schedules(given, other)[1] == {"transfers that only one has": (3, 3)}
