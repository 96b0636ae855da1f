import random

from hypothesis import given
from hypothesis import strategies as st

from commsim.sweep import groups
from commsim.sweep.config import read_config
from commsim.sweep.groups import spread, walk_groups
from commsim.sweep.points import points, structure


def test_all_groups_of_a_small_sweep_are_there_with_all_their_points(small):
    found, n_groups, n_walked = walk_groups(read_config(small), 10**6, random.Random(0))
    every = list(points(read_config(small)))
    assert (n_groups, n_walked) == (8, 24)
    assert {p.digest for group in found for p in (group.first, *group.others)} == {p.digest for p in every}
    assert all(len({structure(p) for p in (group.first, *group.others)}) == 1 for group in found)
    names = [group.first.parameters["collective.name"] for group in found]
    assert names == sorted(names)  # what is alike is together


def test_every_group_is_drawn_as_often_as_any_other(small, monkeypatch):
    monkeypatch.setattr(groups, "MAX_GROUPS", 2)
    drawn = [0] * 24
    for seed in range(800):
        for group in walk_groups(read_config(small), 10**6, random.Random(seed))[0]:
            drawn[group.first.order] += 1
    counts = [n for n in drawn if n]
    assert len(counts) == 8
    assert all(140 <= n <= 260 for n in counts)  # 200 each, with a standard deviation of 12


@given(st.integers(0, 5000), st.integers(1, 64))
def test_a_stream_is_thinned_evenly_and_counted(n, least):
    kept, counted = spread(iter(range(n)), least)
    assert counted == n
    assert min(n, least) <= len(kept) < 2 * least or n == 0
    assert kept == list(range(0, n, kept[1] if len(kept) > 1 else 1))[: len(kept)]


def test_of_a_large_group_every_other_point_is_kept_from_twice_64_on(small):
    small["collective"]["size"]["steps"] = 128
    few = walk_groups(read_config(small), 10**6, random.Random(0))[0][0]
    small["collective"]["size"]["steps"] = 129
    many = walk_groups(read_config(small), 10**6, random.Random(0))[0][0]
    assert (few.n, len(few.others)) == (128, 127)
    assert (many.n, len(many.others)) == (129, 64)


def test_a_few_points_of_a_group_are_one_of_each_part(small):
    small["collective"]["size"]["steps"] = 31
    group = walk_groups(read_config(small), 10**6, random.Random(0))[0][0]
    sizes = [p.parameters["collective.size"] for p in group.others]
    for seed in range(50):
        chosen = [sizes.index(p.parameters["collective.size"]) // 10 for p in group.some(3, random.Random(seed))]
        assert chosen == [0, 1, 2]
    assert len(group.some(99, random.Random(0))) == 30
