import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.prediction.inputs import load_network
from commsim.routing.network_metrics import most_oversubscribed
from topologies.uplinks import CableOptions, Cables, Tier, lay

TIER = Tier("net", "leaf", "spine")


def cables(ports, *, is_full=False, **asked):
    return lay(TIER, ports * 1e9, 1e9, CableOptions(**asked), is_full=is_full)


@given(ports=st.integers(1, 64), n_above=st.integers(1, 16), total=st.integers(1, 64))
def test_what_is_built_has_the_ratio_that_was_asked_for_or_the_nearest_of_whole_cables(ports, n_above, total):
    ratio = ports / total
    can = [n for n in range(1, 200) if n <= n_above or n % n_above == 0]
    if ratio == 1:
        can = [n for n in can if n >= ports]
    nearest = min(can, key=lambda n: (abs(math.log(n / total)), n))
    if abs(ports / nearest - ratio) <= 0.1 * ratio:
        up = cables(ports, n_above=n_above, oversubscription=ratio)
        assert (up.n_above * up.per_pair, up.n_above) == (nearest, min(n_above, nearest))
        return
    with pytest.raises(InputError) as refused:
        cables(ports, n_above=n_above, oversubscription=ratio)
    for built in str(refused.value).split(f"n_spines={n_above}: ")[1].split(";")[0].split(" and "):
        one, other = built.split(" (")[0].split(":")
        up = cables(ports, n_above=n_above, oversubscription=int(one) / int(other))
        assert f"({up.n_above * up.per_pair} cable" in built


@pytest.mark.parametrize(
    ("network", "ratio"),
    [
        ("leaf_spine:n_leaves=2,hosts_per_leaf=32,oversubscription=3", 32 / 11),
        ("dual_tor:n_racks=2,hosts_per_rack=32,oversubscription=3", 32 / 11),
        ("multi_plane:n_planes=2,n_leaves=2,hosts_per_leaf=32,oversubscription=3", 32 / 11),
        ("rail_optimized:n_hosts=64,hosts_per_group=32,oversubscription=3", 32 / 11),
        ("three_tier:n_pods=2,racks_per_pod=2,hosts_per_rack=32,oversubscription=3", 32 / 11),
        ("fat_tree:k=22,oversubscription=3", 11 / 4),
    ],
)
def test_whole_cables_are_taken_for_a_ratio_that_they_nearly_have(network, ratio):
    assert most_oversubscribed(load_network(network)) == pytest.approx(ratio)


def test_one_to_one_never_has_fewer_cables_than_are_non_blocking():
    assert cables(33, n_above=17, oversubscription=1) == Cables(17, 2, 1e9)  # 34; 17 would be 1.94:1
    with pytest.raises(InputError, match=r"33:32 \(32 cables\)"):  # 3 % short; 64 are nearly twice as many
        cables(33, n_above=32, oversubscription=1)


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


def test_a_ratio_that_asks_for_more_than_a_million_cables_of_a_port_is_refused():
    with pytest.raises(InputError, match="net needs oversubscription of at least 1e-06, got 1e-320"):
        cables(8, oversubscription=1e-320)


@pytest.mark.parametrize("ratio", [0.0, -1.0, float("inf"), float("nan")])
def test_a_ratio_that_is_not_positive_is_refused(ratio):
    with pytest.raises(InputError, match="net needs a positive oversubscription, got"):
        cables(8, oversubscription=ratio)


@given(ports=st.integers(1, 64), n_above=st.integers(1, 16), per_pair=st.integers(1, 8), total=st.integers(1, 128))
def test_numbers_of_switches_and_cables_have_the_ratio_that_stands_beside_them(ports, n_above, per_pair, total):
    def built():
        return cables(ports, n_above=n_above, per_pair=per_pair, oversubscription=ports / total)

    if n_above * per_pair == total:
        assert built() == cables(ports, n_above=n_above, per_pair=per_pair) == Cables(n_above, per_pair, 1e9)
        return
    with pytest.raises(InputError) as refused:
        built()
    text = str(refused.value)
    assert f"oversubscription={ports / total:.6g} is {total} cables up from each leaf" in text
    assert f"n_spines={n_above},uplinks_per_spine={per_pair} is {n_above * per_pair}, " in text


@pytest.mark.parametrize(
    ("network", "both"),
    [
        ("leaf_spine:n_leaves=4,hosts_per_leaf=8,n_spines=4", "n_spines=4,uplinks_per_spine=2 is 8, 1:1"),
        ("dual_tor:n_racks=2,hosts_per_rack=8,n_spines=4", "n_spines=4,uplinks_per_spine=2 is 8, 1:1"),
        ("multi_plane:n_planes=2,n_leaves=2,hosts_per_leaf=8,n_spines=4", "n_spines=4,uplinks_per_spine=2 is 8, 1:1"),
        ("rail_optimized:n_hosts=16,hosts_per_group=8,n_spines=4", "n_spines=4,uplinks_per_spine=2 is 8, 1:1"),
        (
            "three_tier:n_pods=2,racks_per_pod=2,hosts_per_rack=8,switches_per_pod=4,n_cores=2",
            "switches_per_pod=4,uplinks_per_spine=2 is 8, 1:1",
        ),
        ("dgx-h100@leaf_spine:machines=2,n_leaves=2,n_spines=4", "n_spines=4,uplinks_per_spine=2 is 8, 1:1"),
    ],
)
def test_every_topology_with_tiers_refuses_a_ratio_that_its_counts_do_not_have(network, both):
    name = network.split("@")[-1].split(":")[0]
    with pytest.raises(InputError, match=f"{name}: .*oversubscription=4 is 2 cables up from each .*, but {both}"):
        load_network(f"{network},oversubscription=4,uplinks_per_spine=2")
    assert load_network(f"{network},oversubscription=1,uplinks_per_spine=2").left_out == ""
