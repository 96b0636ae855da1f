"""Coordinates of nodes: in a network, and in its files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.files.npz import write_arrays
from commsim.files.store import SUFFIXES, read_network, save
from topologies.bcube import bcube
from topologies.dragonfly import dragonfly
from topologies.star import star
from topologies.torus import torus


def three(coordinates):
    return Network("x", ("a", "b", "c"), [0, 0, 0], [0], [1], 1.0, 0.0, coordinates=coordinates)


def test_there_are_none_unless_given():
    assert star(3).coordinates.shape == (4, 0)


def test_they_are_kept_frozen_and_compared():
    network = three([[0, 1], [2, -1], [5, 6]])
    assert network.coordinates.dtype == np.int32
    assert not network.coordinates.flags.writeable
    assert network == three(np.array([[0, 1], [2, -1], [5, 6]]))
    assert network != three([[0, 1], [2, -1], [5, 7]])
    assert hash(network) == hash(three([[0, 1], [2, -1], [5, 6]]))


@pytest.mark.parametrize(
    ("coordinates", "message"),
    [
        ([[0, 1], [2, 3]], r"x: coordinates must have the shape \(3, 2\), got \(2, 2\)"),
        ([0, 1, 2], r"x: coordinates must have the shape"),
        (np.zeros((3, 2, 2)), r"x: coordinates must have the shape"),
        ([[0.5], [1], [2]], "coordinates must hold values that fit int32, got 0.5"),
        ([["a"], ["b"], ["c"]], "coordinates must hold numbers"),
    ],
)
def test_what_is_no_place_for_every_node_is_refused(coordinates, message):
    with pytest.raises(InputError, match=message):
        three(coordinates)


@settings(max_examples=60)
@given(
    at=st.integers(0, 3).flatmap(
        lambda d: st.lists(st.lists(st.integers(-1, 2**31 - 1), min_size=d, max_size=d), min_size=3, max_size=3)
    ),
    suffix=st.sampled_from(SUFFIXES),
)
def test_any_coordinates_read_back_as_they_were_saved(tmp_path_factory, at, suffix):
    network = three(np.array(at, int).reshape(3, -1))
    path = tmp_path_factory.getbasetemp() / f"coordinates{suffix}"
    save(network, path)
    assert read_network(path) == network


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "network", [torus((3, 2)), bcube(2, 1), dragonfly(1, 2, 1)], ids=["torus", "bcube", "dragonfly"]
)
def test_topologies_keep_coordinates_and_routing_in_a_file(tmp_path, suffix, network):
    save(network, tmp_path / f"x{suffix}")
    assert read_network(tmp_path / f"x{suffix}") == network


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([0], r"nodes\[1\].coordinates must be a list of 2 whole numbers, as in nodes\[0\], got \[0\]"),
        (None, r"nodes\[1\].coordinates is missing: a list of 2 whole numbers, as in nodes\[0\]"),
        ([0, 0.5], r"nodes\[1\].coordinates\[1\] must be a whole number, got 0.5"),
        (7, r"nodes\[1\].coordinates must be a list of a whole number, got 7"),
        ([0, 2**31], r"coordinates\[1\] must be a whole number of 32 bits, got 2147483648"),
        ([0, 2**80], r"coordinates\[1\] must be a whole number of 32 bits, got 1208925819614629174706176"),
    ],
)
def test_wrong_coordinates_in_a_file_are_named(tmp_path, wrong, message):
    save(torus((2, 2)), tmp_path / "x.json")
    tree = json.loads((tmp_path / "x.json").read_text())
    if wrong is None:
        del tree["nodes"][1]["coordinates"]
    else:
        tree["nodes"][1]["coordinates"] = wrong
    (tmp_path / "x.json").write_text(json.dumps(tree, indent=1))
    with pytest.raises(InputError, match=message):
        read_network(tmp_path / "x.json")


def test_coordinates_that_do_not_divide_are_refused_in_an_archive(tmp_path):
    save(torus((2, 2)), tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as archive:
        arrays = dict(archive)
    write_arrays(tmp_path / "x.npz", arrays | {"coordinates": arrays["coordinates"][:-1]})
    with pytest.raises(InputError, match="coordinates must be as many for each of 4 nodes, got 7 numbers"):
        read_network(tmp_path / "x.npz")
