"""The number of a node's message engines in files of networks."""

import dataclasses

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.files.network_file import read_network, write_network
from topologies.star import star


@pytest.mark.parametrize("suffix", ["toml", "json", "npz"])
def test_they_are_kept(tmp_path, suffix):
    engines = np.array([1, 8, 2, 1])
    network = dataclasses.replace(star(3), message_engines=engines, overhead=1e-6, overhead_given=True)
    write_network(network, tmp_path / f"a.{suffix}")
    assert read_network(tmp_path / f"a.{suffix}") == network


def test_a_node_without_any_is_refused(tmp_path):
    text = 'schema = 1\nname = "a"\n[[nodes]]\nname = "h0"\nkind = "host"\nmessage_engines = 0\n'
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(InputError, match="message_engines"):
        read_network(tmp_path / "a.toml")
