import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core import value
from commsim.core.errors import InputError
from commsim.core.network import Network, kinds, node_names
from commsim.core.value import NumberedNames, picked_names
from topologies.rail_optimized import rail_optimized

PREFIXES = st.sampled_from(["h", "m", "leaf", "plane1_leaf", "", "m1."])
SUFFIXES = st.lists(st.sampled_from(["", ".gpu0", ".gpu1", "0", "1.gpu0"]), min_size=1, max_size=3, unique=True)


@given(runs=st.lists(st.tuples(PREFIXES, st.integers(0, 12), SUFFIXES.map(tuple)), max_size=3))
def test_they_are_the_names_one_by_one(runs):
    slow = tuple(f"{prefix}{i}{suffix}" for prefix, n, suffixes in runs for i in range(n) for suffix in suffixes)
    names = NumberedNames(runs)
    assert [NumberedNames(runs)[i] for i in range(-len(slow), len(slow))] == [*slow, *slow]
    assert (len(names), names[1:4], *names) == (len(slow), slow[1:4], *slow)
    assert names == slow
    assert slow == names
    assert hash(names) == hash(slow)
    assert names == NumberedNames(runs) == pickle.loads(pickle.dumps(names))
    assert repr(names) == repr(slow)
    assert names + names == slow + slow
    if names.differ:
        assert len(set(slow)) == len(slow)
    with pytest.raises(IndexError):
        names[len(slow)]


@given(data=st.data(), runs=st.lists(st.tuples(PREFIXES, st.integers(0, 12), SUFFIXES.map(tuple)), max_size=3))
def test_picked_names_are_those_at_their_places(data, runs):
    names = NumberedNames(runs)
    places = sorted(data.draw(st.sets(st.integers(0, max(len(names) - 1, 0)), max_size=len(names))))
    slow = tuple(tuple(names)[i] for i in places)
    picked = picked_names(names, np.array(places, np.int64))
    assert (len(picked), picked[1:3], *picked) == (len(slow), slow[1:3], *slow)
    assert [picked[i] for i in range(-len(slow), len(slow))] == [*slow, *slow]
    assert picked == slow == picked_names(tuple(names), np.array(places, np.int64))
    assert hash(picked) == hash(slow)
    assert pickle.loads(pickle.dumps(picked)) == slow
    assert picked.differ == names.differ


def test_a_network_does_not_write_picked_names():
    names = NumberedNames([("h", 200_000, ("",))])
    network = Network("picked", picked_names(names, np.arange(0, 200_000, 100)), kinds(2000, 0), [0], [1], 1.0, 0.0)
    assert names._all is None
    assert network.nodes[1999] == "h199900"


def test_a_name_that_reads_two_ways_is_compared():
    names = NumberedNames([("m1", 12, ("",)), ("m", 20, ("",))])  # m1 and 0, m and 10
    assert not names.differ
    with pytest.raises(InputError, match="node name 'm10' is used twice"):
        Network("two ways", names, kinds(32, 0), [0], [1], 1.0, 0.0)


def test_few_are_read_without_writing_out_the_others():
    names = NumberedNames([("m", 100_000, (".gpu0", ".gpu1")), ("leaf", 10, ("",))])
    assert (names[3], names[-1], names.after(200_000)) == ("m1.gpu1", "leaf9", node_names(leaf=10))
    assert names.after(1) is None
    assert names._all is None


def test_a_large_network_has_the_names_of_a_small_one(monkeypatch):
    small = rail_optimized(4, hosts_per_group=2)
    monkeypatch.setattr(value, "MANY_NAMES", 0)
    large = rail_optimized(4, hosts_per_group=2)
    assert isinstance(large.nodes, NumberedNames)
    assert isinstance(small.nodes, tuple)
    assert large == small
