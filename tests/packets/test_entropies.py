"""Entropies that are sent again, against a queue that drops what it has no room for."""

import random
from collections import deque

import numpy as np
import pytest

from commsim.engine.flow import payload
from commsim.packets.hosts.work import lay_out
from commsim.packets.packet_rows import N_RECYCLED
from commsim.packets.tables import build
from commsim.packets.transports.entropy_kernel import FOR_LOSS, FOR_MARK, FOR_TRIM, WORST, learn, next_entropy
from commsim.packets.transports.spraying import Spraying
from commsim.traffic.host_messages import plan_messages
from commsim.traffic.patterns import permutation
from topologies.leaf_spine import leaf_spine

ENTROPIES = 16


def laid_out(network, spraying):
    """The tables of a permutation before anything is sent."""
    sent = permutation(4, 100_000)
    plan, n = plan_messages(network, sent), len(sent.src)
    rule, ranks = np.zeros(n, np.uint8), np.zeros(1, np.int64)
    return build(lay_out(plan, payload(plan, 1.0), np.zeros(2 * n), [spraying], rule, ranks)).fabric


@pytest.mark.parametrize("balancing", ["reps", "mixed"])
def test_entropies_of_good_packets_are_sent_again_in_the_order_in_which_they_came_back(balancing):
    network, spraying = leaf_spine(2, 2, 2), Spraying("nscc", balancing, ENTROPIES)
    fabric = laid_out(network, spraying)
    draw, waiting, sent = random.Random(3), deque(), 0
    for _ in range(3000):
        if draw.random() < 0.6:
            entropy = draw.randrange(ENTROPIES)
            getattr(learn, "py_func", learn)(fabric, 1, entropy, 0)
            if len(waiting) < N_RECYCLED:
                waiting.append(entropy)
        elif waiting:
            chosen = getattr(next_entropy, "py_func", next_entropy)(fabric, 1)
            assert chosen - int(fabric.flow[1]["upper"]) == waiting.popleft()
            sent += 1
    assert sent > 2 * N_RECYCLED


def test_an_entropys_penalties_add_up_to_the_worst():
    network, spraying = leaf_spine(2, 2, 2), Spraying("nscc", "bitmap", ENTROPIES)
    fabric = laid_out(network, spraying)
    found = []
    for penalty in (FOR_MARK, FOR_MARK, FOR_TRIM, FOR_LOSS, FOR_LOSS):
        getattr(learn, "py_func", learn)(fabric, 1, 5, penalty)
        found.append(int(fabric.penalty[ENTROPIES + 5]))
    assert found == [1, 2, 6, WORST, WORST]
    assert fabric.penalty.sum() == WORST


@pytest.mark.parametrize("balancing", ["oblivious", "bitmap"])
def test_all_entropies_have_their_turn_in_each_round(balancing):
    network, spraying = leaf_spine(2, 2, 2), Spraying("nscc", balancing, ENTROPIES)
    fabric = laid_out(network, spraying)
    for _ in range(8):
        sent = [getattr(next_entropy, "py_func", next_entropy)(fabric, 1) for _ in range(ENTROPIES)]
        assert sorted(one - int(fabric.flow[1]["upper"]) for one in sent) == list(range(ENTROPIES))


def test_an_entropy_that_was_trimmed_is_left_out_of_as_many_rounds_as_its_penalty():
    fabric = laid_out(leaf_spine(2, 2, 2), Spraying("nscc", "bitmap", ENTROPIES))
    getattr(learn, "py_func", learn)(fabric, 1, 5, FOR_TRIM)
    upper, others = int(fabric.flow[1]["upper"]), ENTROPIES - 1
    sent = [getattr(next_entropy, "py_func", next_entropy)(fabric, 1) - upper for _ in range(8 * ENTROPIES)]
    assert FOR_TRIM * others <= sent.index(5) < FOR_TRIM * others + ENTROPIES
    assert fabric.penalty.sum() == 0
