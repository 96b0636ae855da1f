"""Names and what is remembered; nothing here is a namespace."""

import os

import pytest

from commsim.core.errors import InputError
from commsim.prediction.inputs import load_network
from commsim.real.testbed import places
from commsim.real.testbed.own_testbed import remove_dead
from commsim.real.testbed.places import NamesOfTestbed


@pytest.fixture
def folders(monkeypatch, tmp_path):
    """Directories of our own in the place of the machine's."""
    (tmp_path / "netns").mkdir()
    monkeypatch.setattr(places, "NAMESPACES", tmp_path / "netns")
    monkeypatch.setattr(places, "KEPT", tmp_path / "kept")
    monkeypatch.setattr("pyroute2.netns.NETNS_RUN_DIR", str(tmp_path / "netns"))
    return tmp_path


@pytest.mark.parametrize("name", ["", "a" * 17, "Two", "a-b", "../x", "a b", "ä"])
def test_a_name_that_no_testbed_may_have_is_refused(name):
    with pytest.raises(InputError, match="1 to 16 small letters and digits"):
        NamesOfTestbed(name)


def test_a_name_can_be_taken_once(folders):
    network = load_network("star:n_hosts=2")
    NamesOfTestbed("one").claim(network)
    with pytest.raises(InputError, match="there is a testbed one already; `commsim testbed down one`"):
        NamesOfTestbed("one").claim(network)
    NamesOfTestbed("two").claim(network)


def test_the_network_is_remembered_once_everything_is_built(folders):
    network, place = load_network("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2"), NamesOfTestbed("one")
    with pytest.raises(InputError, match="testbed one is not there"):
        place.network()
    place.claim(network)
    with pytest.raises(InputError, match="testbed one is not complete"):
        place.network()
    place.finish()
    assert place.network() == network


def test_namespaces_belong_to_exactly_one_name(folders):
    for name in ("commsim-t1-0", "commsim-t1-12", "commsim-t11-0", "commsim-t-1-0", "commsim-t1-x", "other-t1-0"):
        (folders / "netns" / name).touch()
    assert NamesOfTestbed("t1").namespaces() == ["commsim-t1-0", "commsim-t1-12"]
    assert NamesOfTestbed("t11").namespaces() == ["commsim-t11-0"]
    assert NamesOfTestbed("t").namespaces() == []


def test_testbeds_are_found_by_their_directory_and_by_their_namespaces(folders):
    NamesOfTestbed("built").claim(load_network("star:n_hosts=2"))
    for name in ("commsim-halfgone-3", "commsim-halfgone-4", "commsim-NotOurs-1", "somebody"):
        (folders / "netns" / name).touch()
    assert [place.name for place in places.testbeds()] == ["built", "halfgone"]


def test_what_a_killed_process_had_begun_is_removed_and_nothing_else(folders):
    network = load_network("star:n_hosts=2")
    for name in ("one", "two"):
        NamesOfTestbed(name).claim(network)
    for name in ("commsim-one-0", "commsim-two-0"):  # made, but nothing is mounted there
        (folders / "netns" / name).touch()
    NamesOfTestbed("one").remove()
    NamesOfTestbed("one").remove()
    assert [path.name for path in (folders / "kept").iterdir()] == ["two"]
    assert [path.name for path in (folders / "netns").iterdir()] == ["commsim-two-0"]


def test_testbeds_of_dead_runs_are_taken_away_and_those_of_living_ones_stay(folders):
    highest = 2**22 + 1  # no process has this number
    for name in (f"own{highest}", f"own{os.getpid()}", "ownsome", "other"):
        NamesOfTestbed(name).claim(load_network("star:n_hosts=2"))
    assert remove_dead() == [f"own{highest}"]
    assert {place.name for place in places.testbeds()} == {f"own{os.getpid()}", "ownsome", "other"}
