import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from topologies.uplinks import CableOptions, Cables, Tier, lay

TIER = Tier("net", "leaf", "spine")


def cables(ports, *, is_full=False, **asked):
    return lay(TIER, ports * 1e9, 1e9, CableOptions(**asked), is_full=is_full)


@given(ports=st.integers(1, 64), n_above=st.integers(1, 16), total=st.integers(1, 64))
def test_what_is_built_has_the_ratio_that_was_asked_for(ports, n_above, total):
    if total <= n_above or total % n_above == 0:
        up = cables(ports, n_above=n_above, oversubscription=ports / total)
        assert up.n_above * up.per_pair == total
        assert up.n_above == min(n_above, total)
        return
    with pytest.raises(InputError) as refused:
        cables(ports, n_above=n_above, oversubscription=ports / total)
    for ratio in str(refused.value).split(f"n_spines={n_above}: ")[1].split(";")[0].split(" and "):
        one, other = ratio.split(" (")[0].split(":")
        up = cables(ports, n_above=n_above, oversubscription=int(one) / int(other))
        assert f"({up.n_above * up.per_pair} cable" in ratio


@given(ports=st.integers(1, 64), ratios=st.lists(st.integers(1, 64), min_size=2, max_size=2).map(sorted))
def test_a_larger_ratio_never_has_more_cables(ports, ratios):
    more, fewer = (cables(ports, oversubscription=ports / n) for n in reversed(ratios))
    assert more.n_above * more.per_pair >= fewer.n_above * fewer.per_pair


@given(ports=st.integers(1, 64), n_above=st.integers(1, 16))
def test_without_a_ratio_it_is_one_cable_a_pair_or_as_few_as_are_non_blocking(ports, n_above):
    assert cables(ports, n_above=n_above) == Cables(n_above, 1, 1e9)
    full = cables(ports, n_above=n_above, is_full=True)
    assert full.n_above == n_above
    assert n_above * full.per_pair >= ports > n_above * (full.per_pair - 1)
    assert cables(ports, is_full=True) == Cables(ports, 1, 1e9)


def test_a_ratio_that_people_round_is_taken():
    assert cables(16, oversubscription=1.07).n_above == 15
    assert cables(8, oversubscription=1.333).n_above == 6


def test_cables_of_another_rate_are_fewer():
    assert cables(8, oversubscription=2.0, rate=2e9) == Cables(2, 1, 2e9)
    assert cables(8, is_full=True, rate=4e9) == Cables(2, 1, 4e9)


@pytest.mark.parametrize("ratio", [0.0, -1.0, float("inf"), float("nan")])
def test_a_ratio_that_is_not_positive_is_refused(ratio):
    with pytest.raises(InputError, match="net needs a positive oversubscription, got"):
        cables(8, oversubscription=ratio)
