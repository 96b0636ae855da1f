"""The shipped switch, its workers and the value pass on the ways that proofs have found."""

import pytest

from benchmarks.switch.live_conformance import ConformanceError, UserPlane, check_live
from benchmarks.switch.replay_conformance import check_replay, wrong_elements
from benchmarks.switch.way_tree import way_tree
from switch_model.prove.event_trace import way_to
from switch_model.prove.exploration import explore
from switch_model.prove.question import ProofQuestion
from switch_model.prove.seeded import BUGS, ONCE

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("question", "every"),
    [
        (ProofQuestion("switchml_live", 2, 1, 3), 1),
        (ProofQuestion("switchml_live", 2, 1, 2, restarts=1, reboots=1, recovery="epoch"), 1),
        (ProofQuestion("switchml_live", 3, 2, 4), 40),
    ],
)
def test_the_switch_and_its_workers_do_what_the_model_does(question, every):
    checked = check_live(way_tree(explore(question)), UserPlane(question), every)
    assert checked.packets > 60


@pytest.mark.parametrize("bug", ["answers_none", "sequence_not_asked", "one_too_many", "held_not_kept"])
def test_a_model_that_is_wrong_differs_from_the_switch(bug):
    question = ProofQuestion("switchml_live", 2, 1, 2, bug=bug)
    with pytest.raises(ConformanceError):
        check_live(way_tree(explore(question)), UserPlane(question))


@pytest.mark.parametrize(
    "question",
    [
        ProofQuestion("switchml", 3, 1, 4),
        ProofQuestion("omnireduce", 2, 1, 3),
        ProofQuestion("atp", 2, 1, 2),
        ProofQuestion("atp", 3, 1, 1),
    ],
)
def test_what_workers_take_is_the_exact_sum_of_real_tensors(question):
    checked = check_replay(way_tree(explore(question)))
    assert checked.results > 10
    assert checked.wrong_elements == 0


LATE = [{"system": "switchml", "workers": 3, "chunks": 2, "slots": 1, "reorder": "1"},
        {"system": "omnireduce", "workers": 2, "chunks": 2, "slots": 1, "reorder": "1"}]  # fmt: skip
SEEDED = ["seen_not_asked", "one_too_few", "overwrites_always", "adds_to_the_old", "server_adds_twice"]


@pytest.mark.parametrize("where", [*LATE, *({**BUGS[name].where, "bug": name} for name in SEEDED)], ids=str)
def test_a_sum_that_the_proof_calls_wrong_is_wrong_with_real_tensors(where):
    found = explore(ProofQuestion(**where))
    assert found.broken == ONCE
    way = way_to(found, found.at, found.label)
    assert wrong_elements(found.question, way) > 0
    assert wrong_elements(found.question, way[:-1]) == 0
