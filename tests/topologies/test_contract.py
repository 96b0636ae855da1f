"""What holds for every registered topology; a new one is covered without a line here."""

import contextlib
import inspect
import itertools
import typing
from collections import Counter

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.spec import read_arguments, split_spec
from commsim.routing.network_metrics import measure
from topologies import MAX_NODES, TOPOLOGIES, require_buildable


def required(name: str) -> list[str]:
    """Parameters without a default, and the leaves or racks and their hosts, which other counts may say instead."""
    parameters, leaves = (
        TOPOLOGIES[name].parameters.items(),
        ("n_leaves", "n_racks", "hosts_per_leaf", "hosts_per_rack"),
    )
    return [key for key, one in parameters if one.default is one.empty or key in leaves]


def build(text: str) -> Network:
    name, raw = split_spec(text)
    function = TOPOLOGIES[name].build
    return function(**read_arguments(function, raw))


def examples(name: str) -> list[str]:
    """Two small networks: all required parameters alike where that is legal, else whatever is."""
    found = []
    counts = itertools.chain(
        ((n,) * len(required(name)) for n in (2, 4)), itertools.product((3, 2, 4, 1), repeat=len(required(name)))
    )
    for values in counts:
        given = ",".join(f"{key}={count}" for key, count in zip(required(name), values, strict=True))
        text = f"{name}:{given},bandwidth=33.3Gbps,latency=0.7us"
        with contextlib.suppress(InputError):
            build(text)
            found.append(text)
        if len(found) == 2:
            break
    return found


EXAMPLES = [text for name in TOPOLOGIES for text in examples(name)]


def test_every_topology_has_small_examples():
    assert Counter(text.split(":")[0] for text in EXAMPLES) == dict.fromkeys(TOPOLOGIES, 2)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_docstring_has_its_sections(name):
    doc = inspect.getdoc(TOPOLOGIES[name].build) or ""
    for section in ("Parameters", "Returns", "Raises", "References"):
        assert f"\n{section}\n{'-' * len(section)}\n" in doc, section
    for parameter in TOPOLOGIES[name].parameters:
        assert parameter in doc


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_parameter_is_annotated_and_a_quantity_says_which(name):
    hints = typing.get_type_hints(TOPOLOGIES[name].build, include_extras=True)
    assert hints["return"] is Network
    for parameter in TOPOLOGIES[name].parameters:
        assert parameter in hints
        quantity = {"bandwidth": "bandwidth", "latency": "time"}.get(parameter.split("_")[-1])
        if quantity:
            assert quantity in repr(hints[parameter])


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_name_records_the_arguments_so_that_it_builds_the_same_network(text):
    network = build(text)
    assert build(network.name) == network
    assert network.name.startswith(text.split(":")[0] + ":")


@pytest.mark.parametrize("text", EXAMPLES)
def test_places_for_ranks_come_first_and_each_link_has_its_reverse(text):
    network = build(text)
    assert np.array_equal(network.endpoints, np.arange(len(network.endpoints)))
    columns = (network.src, network.dst, network.bandwidth, network.latency)
    there = Counter(zip(*(c.tolist() for c in columns), strict=True))
    back = Counter((dst, src, *rest) for src, dst, *rest in zip(*(c.tolist() for c in columns), strict=True))
    assert there == back


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_host_reaches_every_host(text):
    assert measure(build(text)).no_path is None


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_what_no_memory_holds_is_refused_at_once(name):
    raw = dict.fromkeys(required(name), "3000000000")
    with pytest.raises(InputError, match=f"{name} would have"):
        TOPOLOGIES[name].build(**read_arguments(TOPOLOGIES[name].build, raw))


def test_the_largest_size_is_allowed_and_the_next_is_not():
    require_buildable("x", MAX_NODES, 0)
    with pytest.raises(InputError, match=f"{MAX_NODES + 1} nodes"):
        require_buildable("x", MAX_NODES + 1, 0)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_fraction_for_a_count_and_text_for_a_rate_are_refused_from_python(name):
    hints = typing.get_type_hints(TOPOLOGIES[name].build)
    smallest = {key: 2 if hints[key] in (int, int | None) else (2,) for key in required(name)}
    count = required(name)[0]
    with pytest.raises(InputError, match=rf"{name}: {count} must be .*whole number.*, got 2\.0"):
        TOPOLOGIES[name].build(**smallest | {count: 2.0})
    with pytest.raises(InputError, match=f"{name}: bandwidth must be a number of bytes per second, got '1Gbps'"):
        TOPOLOGIES[name].build(**smallest, bandwidth="1Gbps")
