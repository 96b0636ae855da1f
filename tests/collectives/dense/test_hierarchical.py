import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.hierarchical import default_groups, hierarchical_all_reduce, hierarchical_cost
from commsim.core.checking.check import check
from commsim.core.cost import LogGP
from commsim.core.errors import InputError


@st.composite
def partitions(draw):
    n_ranks = draw(st.integers(1, 16))
    ranks = draw(st.permutations(range(n_ranks)))
    cuts = sorted(draw(st.sets(st.integers(1, n_ranks - 1)))) if n_ranks > 1 else []
    return n_ranks, tuple(tuple(ranks[a:b]) for a, b in zip([0, *cuts], [*cuts, n_ranks], strict=True))


@given(partitions())
def test_any_partition_into_groups_of_any_sizes_is_an_all_reduce(partition):
    n_ranks, groups = partition
    check(hierarchical_all_reduce(n_ranks, groups))


@given(n_ranks=st.integers(1, 3000))
def test_the_default_groups_are_equal_and_consecutive(n_ranks):
    groups = default_groups(n_ranks)
    assert [r for group in groups for r in group] == list(range(n_ranks))
    assert len({len(group) for group in groups}) == 1
    assert len(groups[0]) <= len(groups)


@pytest.mark.parametrize(("m", "g"), [(1, 5), (4, 1), (2, 3), (4, 4), (3, 5)])
def test_equal_groups_send_the_optimal_volume_and_most_of_it_inside(m, g):
    groups = tuple(tuple(range(i * m, i * m + m)) for i in range(g))
    schedule = hierarchical_all_reduce(m * g, groups)
    sent, received, _ = volumes(schedule)
    np.testing.assert_allclose(sent, 2 * (m * g - 1) / (m * g))
    np.testing.assert_allclose(received, sent)
    transfers = schedule.expand()
    between = transfers[transfers["src"] // m != transfers["dst"] // m]
    across = np.bincount(between["src"], weights=between["count"], minlength=m * g) / schedule.n_chunks
    np.testing.assert_allclose(across, 2 * (g - 1) / (m * g))
    assert schedule.n_hops == 2 * (m - 1) + 2 * (g - 1)


def test_neighbouring_shards_with_the_same_owners_travel_together():
    schedule = hierarchical_all_reduce(5, ((0, 1, 2), (3, 4)))
    assert schedule.n_chunks == 12
    transfers = schedule.expand()
    across = transfers[(transfers["src"] < 3) != (transfers["dst"] < 3)]
    assert len(across) == 2 * 2 * 4  # pieces end at 1/3, 1/2, 2/3 and 1; two directions, two passes
    assert sorted({*across["count"].tolist()}) == [1, 2]


def test_groups_that_lie_regularly_are_kept_as_four_rounds():
    schedule = hierarchical_all_reduce(131_072)
    assert [len(block.body) for block in schedule.blocks] == [131_072] * 4
    assert schedule.n_transfers == 131_072 * 2 * (255 + 511)


@pytest.mark.parametrize(
    "groups",
    [((0, 1), (2,)), ((0, 1), (1, 2, 3)), ((0, 1, 2, 3), ()), ((0, 1), (2, 4)), ((0, 1, 2, 3), (3,)), ()],
)
def test_groups_that_are_no_partition_are_refused(groups):
    with pytest.raises(InputError, match=r"groups must hold each rank 0\.\.3 exactly once, and none be empty"):
        hierarchical_all_reduce(4, groups)


def test_groups_with_a_huge_common_multiple_are_refused():
    sizes = [16, 17, 19, 21, 23]
    ends = np.cumsum(sizes)
    groups = tuple(tuple(range(e - s, e)) for s, e in zip(sizes, ends, strict=True))
    with pytest.raises(InputError, match=r"5 groups of sizes 16, 17, 19, 21, 23 need \d+ chunks on 96 ranks"):
        hierarchical_all_reduce(96, groups)


def test_unequal_groups_have_no_closed_form():
    with pytest.raises(InputError, match="closed form for groups of equal size only"):
        hierarchical_cost(3, 1.0, LogGP(), ((0, 1), (2,)))
