"""A network that counts its packets leads where the one that keeps all of them leads, and nowhere else."""

import pytest
from slow_network import SlowNetwork

from switch_model.prove.exploration import explore
from switch_model.prove.question import ProofQuestion
from switch_model.prove.reserved_slots import ReservedSlots
from switch_model.prove.slot_world_kernel import FIRST, decode

pytestmark = pytest.mark.slow


def projections(question):
    """What workers and the switch can know, by the proof."""
    found, steps, seen = explore(question), ReservedSlots(question), set()
    world = steps.world
    for state in range(len(found.states)):
        decode(steps.model, world, found.states, state)
        columns = []
        for w in range(question.workers):
            held = tuple((code - FIRST,) if code >= FIRST else () for code in world.register[:, w].tolist())
            bits = tuple(bool(int(slot["seen"]) >> w & 1) for slot in world.slots)
            columns.append((int(world.awaits[w, 0]), bits, held))
        switch = tuple((int(slot["count"]), bool(slot["has_result"])) for slot in world.slots)
        seen.add((tuple(sorted(columns)), switch))
    return seen, found


@pytest.mark.parametrize(("workers", "rounds", "copies", "repeats"), [(2, 3, 1, 2), (3, 2, 1, 1), (2, 4, 2, 1)])
def test_in_order_both_reach_the_same_and_never_a_wrong_sum(workers, rounds, copies, repeats):
    counted = SlowNetwork(workers, rounds, True, copies=copies, repeats=repeats).explore()
    kept, found = projections(ProofQuestion("switchml", workers, 1, rounds))
    assert not found.broken
    assert not counted.wrong
    assert counted.projections == kept
    assert len(counted.scenes) > 10 * len(found.states)


def test_a_late_copy_is_a_wrong_sum_in_both():
    assert SlowNetwork(2, 2, False, copies=2, repeats=0, losses=0).explore().wrong
    assert explore(ProofQuestion("switchml", 2, 1, 2, reorder="1")).broken
    assert not SlowNetwork(2, 2, False, copies=0, repeats=0).explore().wrong
