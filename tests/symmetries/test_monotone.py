"""More bytes take no less time, higher rates no more, and nothing takes less than the lower bound."""

import dataclasses
import random

import numpy as np
import pytest
from drawn_questions import ENGINES, drawn_questions

import commsim as cs
from collectives import COLLECTIVES
from commsim.core.errors import InputError
from switch_model.systems import SYSTEMS

SLACK = 1e-12
# What breaks it, over 2,000 pairs of sizes and 1,500 of rates of each engine: pieces and partitions are cut for a size
# by a rule, and another number may be quicker (at most 3.1 %); on paper a port serves messages in the order in which
# they are ready, and an earlier one may be in the way of a more urgent one (3 pairs of sizes, at most 4.3 %).
OF_PIECES, OF_PORTS = 0.035, 0.045
PIECES = {"n_chunks", "n_partitions"}
BOUND_SLACK = 1e-9  # as physics is checked


def at_least(question, time, **other):
    """Return whether a question takes no less than `time`; None where the engine on paper refuses it."""
    cut = not PIECES.isdisjoint(COLLECTIVES[question.collective].parameters)
    slack = max(SLACK, cut * OF_PIECES, (question.engine == "alpha-beta") * OF_PORTS)
    try:
        return question.ask(**other).time >= time * (1 - slack)
    except InputError:
        return None


@pytest.mark.sample(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_more_bytes_take_no_less_time(engine):
    held = []
    for question, answer in drawn_questions(engine):
        draw = random.Random(str(question))
        for size in (question.size + 1, round(question.size * draw.uniform(1.001, 3)) + 1):
            held.append(at_least(question, answer.time, size=size))
            assert held[-1] is not False, f"{question}: {size} B take less"
    assert held.count(True) > len(held) / 2


@pytest.mark.parametrize("engine", ENGINES)
def test_lower_rates_take_no_less_time(engine):
    held = []
    for question, answer in drawn_questions(engine):
        factor = random.Random(str(question)).uniform(0.3, 0.999)
        slower = dataclasses.replace(question.network, bandwidth=question.network.bandwidth * factor)
        held.append(at_least(question, answer.time, network=slower))
        assert held[-1] is not False, f"{question}: {factor} of the rates take less"
    assert held.count(True) > len(held) / 2


def bounding(question):
    """Return the network of the bound: messages of switch systems have no overhead of the host's software."""
    if question.collective not in SYSTEMS:
        return question.network
    nothing = np.zeros_like(question.network.overhead)
    return dataclasses.replace(question.network, overhead=nothing, recv_overhead=nothing)


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_takes_less_than_the_lower_bound(engine):
    n_bounded = 0
    for question, answer in drawn_questions(engine):
        operation = COLLECTIVES[question.collective].metadata["operation"]
        try:
            least = cs.lower_bound(operation, bounding(question), n_ranks=question.n_ranks, anywhere=True)
        except InputError:
            continue
        assert answer.time >= least.time(question.size) * (1 - BOUND_SLACK), question
        n_bounded += least.time(question.size) > 0
    assert n_bounded > 15
