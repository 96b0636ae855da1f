"""The number of a node's message engines in files of networks."""

import dataclasses

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.files.network_file import read_network, write_network, write_node_link
from commsim.prediction.read import with_default_overhead
from topologies.star import star


@pytest.mark.parametrize("suffix", ["toml", "json", "npz"])
def test_they_are_kept(tmp_path, suffix):
    engines = np.array([1, 8, 2, 1])
    network = dataclasses.replace(star(3), message_engines=engines, overhead=1e-6, overhead_given=True)
    write_network(network, tmp_path / f"a.{suffix}")
    assert read_network(tmp_path / f"a.{suffix}") == network


@pytest.mark.parametrize("suffix", ["toml", "json", "npz"])
def test_a_default_overhead_is_not_taken_for_one_that_was_given(tmp_path, suffix):
    network = with_default_overhead(star(3))
    assert network.overhead.any()
    write_network(network, tmp_path / f"a.{suffix}")
    assert read_network(tmp_path / f"a.{suffix}") == network
    write_node_link(network, tmp_path / "b.json")
    assert read_network(tmp_path / "b.json") == network


def test_a_node_without_any_is_refused(tmp_path):
    text = 'schema = 1\nname = "a"\n[[nodes]]\nname = "h0"\nkind = "host"\nmessage_engines = 0\n'
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(InputError, match="message_engines"):
        read_network(tmp_path / "a.toml")
