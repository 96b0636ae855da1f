"""What holds for every host type; a new one is covered without a line here."""

import inspect

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.files.store import SUFFIXES, read_network, save
from commsim.core.network import Network
from commsim.core.spec import read_arguments, split_spec
from commsim.routing.network_metrics import measure
from topologies.hosts import HOST_TYPES
from topologies.hosts.load import load_machine


@pytest.mark.parametrize("name", HOST_TYPES)
def test_the_docstring_has_its_sections(name):
    doc = inspect.getdoc(HOST_TYPES[name].build) or ""
    for section in ("Parameters", "Returns", "Raises", "References"):
        assert f"\n{section}\n{'-' * len(section)}\n" in doc, section
    for parameter in HOST_TYPES[name].parameters:
        assert parameter in doc


@pytest.mark.parametrize("name", HOST_TYPES)
def test_it_is_one_machine_that_can_be_built_again_from_its_name(name):
    machine = HOST_TYPES[name].build()
    assert isinstance(machine, Network)
    assert (machine.machine == 0).all()
    assert machine.is_cabled
    assert machine.endpoints.tolist() == list(range(len(machine.endpoints)))
    assert measure(machine).no_path is None
    again, raw = split_spec(machine.name)
    assert HOST_TYPES[again].build(**read_arguments(HOST_TYPES[again].build, raw)) == machine


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", HOST_TYPES)
def test_it_reads_back_exactly_as_it_was_saved(tmp_path, name, suffix):
    save(HOST_TYPES[name].build(), tmp_path / f"x{suffix}")
    assert read_network(tmp_path / f"x{suffix}") == HOST_TYPES[name].build()


@pytest.mark.parametrize("name", HOST_TYPES)
def test_counts_that_cannot_be_are_refused(name):
    build = HOST_TYPES[name].build
    for key in (key for key in HOST_TYPES[name].parameters if key.startswith("n_")):
        for count in (-1, 4097):
            with pytest.raises(InputError, match=rf"{name} needs {key} of 0\.\.4096, got {key}={count}"):
                build(**{key: count})
        with pytest.raises(InputError, match=f"{name}: {key} must be a whole number, got 2.5"):
            build(**{key: 2.5})
    with pytest.raises(InputError, match="needs a positive bandwidth, got 0"):
        build(nic=0.0)
    with pytest.raises(InputError, match=f"{name}: nic must be a number of bytes per second"):
        build(nic="25GB/s")


@pytest.mark.parametrize("name", HOST_TYPES)
def test_a_machine_without_nics_is_legal(name):
    machine = HOST_TYPES[name].build(n_nics=0)
    assert not np.isin("nic0", machine.nodes)


@pytest.mark.parametrize(("spec", "what"), [("hgx-h100:n_gpus=9", "GPUs"), ("mi300x:n_nics=12", "NICs")])
def test_more_devices_than_a_preset_has_are_refused_by_their_own_name(spec, what):
    name, count = spec.split(":")
    with pytest.raises(InputError, match=f"^{name} has 8 {what}: {count.split('=')[0]} is at most 8, got"):
        load_machine(spec)


@pytest.mark.parametrize(
    ("net", "meant"), [("ib", "infiniband"), ("InfiniBand", "infiniband"), ("rocev2", "roce"), ("tcp", "sockets")]
)
def test_other_names_of_networks_are_answered_with_ours(net, meant):
    with pytest.raises(InputError, match=f"net must be one of infiniband, .*, got '{net}'; did you mean {meant}[?]$"):
        load_machine(f"dgx-h100:net={net}")
