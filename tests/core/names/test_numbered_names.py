import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.names import numbered_names
from commsim.core.names.numbered_names import NumberedNames
from commsim.core.network import Network, kinds, node_names
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
    monkeypatch.setattr(numbered_names, "MANY_NAMES", 0)
    large = rail_optimized(4, hosts_per_group=2)
    assert isinstance(large.nodes, NumberedNames)
    assert isinstance(small.nodes, tuple)
    assert large == small
