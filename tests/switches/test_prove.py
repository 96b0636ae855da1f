"""Protocols, proved: what holds with any number of losses and copies, what does not, and bugs that are found."""

import numpy as np
import pytest

from commsim.core.errors import InputError
from switch_model.prove import slot_events_kernel, slot_moves_kernel
from switch_model.prove.event_trace import diagram, way_to
from switch_model.prove.exploration import explore, room_for, steps_of
from switch_model.prove.question import ProofQuestion
from switch_model.prove.reserved_slots import ReservedSlots
from switch_model.prove.seeded import BUGS, ONCE, PROGRESS
from switch_model.prove.step_labels import NOT_ONCE, TWO_SUMS

pytestmark = pytest.mark.slow  # kernels are compiled once


def ask(system="switchml", workers=2, slots=1, chunks=3, **more):
    return explore(ProofQuestion(system, workers, slots, chunks, **more))


HOLDS = [
    {"workers": 3, "slots": 2, "chunks": 4},
    {"chunks": 6},
    {"system": "omnireduce", "workers": 3, "chunks": 3},
    {"system": "switchml_live", "workers": 3, "slots": 2, "chunks": 4},
    {"system": "switchml_live", "restarts": 1, "reboots": 1, "recovery": "epoch"},
    {"system": "atp", "chunks": 2},
    {"system": "atp", "chunks": 2, "restarts": 1, "reboots": 1},
]


@pytest.mark.parametrize("question", HOLDS, ids=str)
def test_what_the_protocols_guarantee(question):
    found = ask(**question)
    assert (found.broken, found.whole) == ("", True)
    assert found.depth > 0


BREAKS = [
    ({"reorder": "1", "chunks": 2}, ONCE, 7),
    ({"restarts": 1, "workers": 3}, ONCE, 12),
    ({"reboots": 1, "workers": 3}, ONCE, 10),
    ({"restarts": 1, "chunks": 1, "recovery": "epoch"}, ONCE, 4),
    ({"system": "switchml_live", "reboots": 1}, PROGRESS, 4),
    ({"system": "switchml_live", "restarts": 1}, PROGRESS, None),
]


@pytest.mark.parametrize(("question", "broken", "n_steps"), BREAKS, ids=str)
def test_what_they_do_not(question, broken, n_steps):
    found = ask(**question)
    assert found.broken == broken
    if n_steps is not None and broken != PROGRESS:
        assert len(way_to(found, found.at, found.label)) == n_steps


@pytest.mark.parametrize("name", BUGS)
def test_each_seeded_bug_breaks_what_it_should_and_without_it_all_holds(name):
    bug = BUGS[name]
    found = explore(ProofQuestion(**bug.where, bug=name))
    assert found.broken == bug.breaks
    steps = way_to(found, found.at, found.label)
    lines = diagram(found.question, steps, found.broken)
    assert len(lines) == len(steps) + 2
    assert max(map(len, lines)) <= 80
    assert not explore(ProofQuestion(**bug.where)).broken


def test_a_trace_is_shortest():
    """No way of fewer steps leads to a wrong sum: all states up to there are looked at without one."""
    found = ask(reorder="1", chunks=2)
    depth = {}
    for number, parent in enumerate(found.parents.tolist()):
        depth[number] = 0 if parent < 0 else depth[parent] + 1
    assert sorted(depth.values()) == list(depth.values())
    assert len(way_to(found, found.at, found.label)) == depth[found.at] + 1


def test_another_sum_of_a_chunk_that_a_worker_has_is_noticed():
    steps = ReservedSlots(ProofQuestion("switchml", 2, 1, 1))
    state = steps.first()
    for right, verdict in ((True, 0), (False, TWO_SUMS)):
        if not right:
            steps.world.bad[0, 0] = 1
        assert slot_events_kernel.take_result(steps.model, steps.world, 0, 0, 0, right) == verdict
    steps.first()
    assert slot_events_kernel.take_result(steps.model, steps.world, 0, 0, 0, False) == NOT_ONCE
    assert len(state) == 1


def test_workers_that_change_names_are_one_state():
    named, known = (steps_of(ProofQuestion("switchml", 3, 1, 2), symmetric) for symmetric in (False, True))
    room = room_for(named.n_words, 100)
    n, _ = named.expand(named.first(), 0, 1, room)
    assert n == 3
    assert len(np.unique(room.new[:n], axis=0)) == 3
    assert len(np.unique(known.same(room.new[:n]), axis=0)) == 1


@pytest.mark.parametrize("system", ["switchml", "omnireduce", "atp"])
def test_with_and_without_names_the_same_is_reached(system, monkeypatch):
    """Every state without names has all its kinds with names, and the other way round."""
    question = ProofQuestion(system, 2, 1, 2)
    known = explore(question)
    monkeypatch.setattr("switch_model.prove.exploration.steps_of", lambda q: steps_of(q, symmetric=False))
    named = explore(question)
    assert len(named.states) > len(known.states)
    as_known = np.unique(steps_of(question).same(named.states), axis=0)
    assert np.array_equal(as_known, np.unique(known.states, axis=0))


def test_a_state_goes_through_its_words_unchanged():
    found = ask("omnireduce", workers=3, chunks=3)
    assert np.array_equal(steps_of(found.question).same(found.states), found.states)
    done = np.zeros(len(found.states), np.bool_)
    room = room_for(found.states.shape[1])
    named = steps_of(found.question)
    assert isinstance(named, ReservedSlots)
    slot_moves_kernel.complete_slots(
        named.model, named.world, found.states, 0, len(found.states), room.new, room.origin, done
    )
    assert done.any()
    assert not done.all()


def test_too_many_states_are_refused():
    with pytest.raises(InputError, match="more than 100 states"):
        explore(ProofQuestion("switchml", 3, 2, 4), max_states=100)
