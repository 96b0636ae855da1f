import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.papers.systems.cross_mesh import cross_mesh
from commsim.papers.systems.sharding import boxes, parse_sharding, resharding_works

SHARDINGS = ["RR", "S0R", "RS0", "S1R", "S0S1", "S1S0", "S01R", "RS10"]
meshes = st.sampled_from([(1, 2), (2, 1), (2, 2), (2, 4)])


@given(mesh=meshes, sharding=st.sampled_from(SHARDINGS))
def test_every_element_is_on_as_many_devices_as_the_unused_axes_have(mesh, sharding):
    used = {axis for axes in parse_sharding(sharding) for axis in axes}
    copies = math.prod(mesh[axis] for axis in (0, 1) if axis not in used)
    held = boxes((8, 8), mesh, sharding)
    counts = [sum(a[0] <= i < a[1] and b[0] <= j < b[1] for a, b in held) for i in range(8) for j in range(8)]
    assert counts == [copies] * 64


@given(mesh=meshes, other=meshes, source=st.sampled_from(SHARDINGS), target=st.sampled_from(SHARDINGS))
def test_every_receiver_gets_exactly_what_it_needs(mesh, other, source, target):
    sources, targets = boxes((8, 8), mesh, source), boxes((8, 8), other, target)
    works = resharding_works(sources, targets, 1.0)
    for device, ((top, bottom), (left, right)) in enumerate(targets, len(sources)):
        got = sum(work.duration for work in works if device in work.receivers)
        assert got == (bottom - top) * (right - left)
    assert all(sender < len(sources) for work in works for sender in work.senders)


def test_axes_of_a_dimension_count_in_the_order_in_which_they_stand():
    assert [rows for rows, _ in boxes((4, 1), (2, 2), "S01R")] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert [rows for rows, _ in boxes((4, 1), (2, 2), "S10R")] == [(0, 1), (2, 3), (1, 2), (3, 4)]


def test_copies_on_two_hosts_halve_the_time_once_senders_are_balanced():
    """Each host of the source has all, each of the target needs a half: the first host alone sends them in turn."""
    answer = cross_mesh(shape=(64, 64), source="RR", target="S0R", bandwidth=1e9)
    whole = 64 * 64 * 4 / 1e9
    assert answer["naive_s"] == pytest.approx(whole)
    assert answer["balanced_s"] == answer["ordered_s"] == answer["lower_bound_s"] == pytest.approx(whole / 2)


def test_the_order_lets_hosts_work_at_once():
    """Rows to columns on 4 hosts: 16 pieces, of which 4 can move at a time; part by part they queue for ports."""
    answer = cross_mesh(shape=(64, 64), source_mesh=(4, 1), target_mesh=(4, 1), source="S0R", target="RS0",
                        gpus_per_host=1, bandwidth=1e9)  # fmt: skip
    assert answer["pieces"] == 16
    assert answer["lower_bound_s"] == pytest.approx(64 * 64 * 4 / 4 / 1e9)
    assert answer["ordered_s"] <= answer["balanced_s"]
    assert answer["ordered_s"] == pytest.approx(answer["lower_bound_s"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"source": "S2RR"}, "a sharding has R, S0, S1, S01 or S10"),
        ({"source": "S0S01R"}, "an axis of the mesh divides one dimension at most, got 'S0S01R'"),
        ({"target": "S0R"}, "a word of 'S0R' for each of its dimensions, got 2x4 and 1024x1024x512"),
        ({"shape": (9, 9, 9)}, "a dimension of 9 elements into 2 unequal parts"),
        ({"gpus_per_host": 0}, "must be at least 1"),
        ({"source_mesh": (128, 1), "source": "S0RR", "target_mesh": (64, 1), "target": "RS0R"}, "more than 4096"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        cross_mesh(**given)
