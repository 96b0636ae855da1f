"""Messages cost the same in every engine, on networks whose hosts have one cable, many, or NICs."""

import numpy as np
import pytest

import commsim as cs
from commsim.core.network import SWITCH
from commsim.engine import closed_form
from commsim.prediction.read import DEFAULT_OVERHEAD, changed_network, with_default_overhead

MESH, CUBE, TORUS = "fully_connected:n_hosts=16", "hypercube:dimension=4", "torus:dims=4x4"
# No link of these is shared by two messages at once. Packets have headers, and closed forms one port.
QUESTIONS = [
    ("direct_all_to_all", MESH), ("pairwise_all_to_all", MESH), ("bruck_all_to_all", MESH), ("direct_scatter", MESH),
    ("recursive_doubling_all_reduce", MESH), ("ring_all_reduce", MESH), ("dissemination_barrier", MESH),
    ("halving_doubling_all_reduce", "fully_connected:n_hosts=8"), ("recursive_doubling_all_reduce", CUBE),
    ("halving_doubling_all_reduce", CUBE), ("recursive_doubling_all_gather", CUBE),
    ("ring_all_reduce", "ring:n_hosts=8"),
    ("torus_all_reduce:all_links=false", TORUS), ("ring_all_reduce", "dgx-h100"),
    ("recursive_doubling_all_reduce", "dgx-h100"),
    ("direct_all_to_all", "p4d"),
]  # fmt: skip


@pytest.mark.parametrize(("collective", "network"), QUESTIONS)
def test_four_engines_agree_on_what_messages_cost(collective, network):
    size = 0 if "barrier" in collective else "1KiB"
    given = {"overhead": "1us"} if network in ("dgx-h100", "p4d") else {}  # plain hosts have it by default
    times = {e: cs.predict(collective, network, size, engine=e, **given).time for e in ("flow", "packet", "alpha-beta")}
    times["closed-form"] = cs.predict(collective, network, size, engine="closed-form", overhead="1us").time
    assert times == {engine: pytest.approx(times["closed-form"], rel=1e-2) for engine in times}
    ideal = cs.predict(collective, network, size, overhead="0us").time
    assert times["flow"] > ideal + 0.9 * DEFAULT_OVERHEAD


DGX, CPUS = "dgx-h100@star:machines=2", "cpu_host:n_cpus=2,n_nics=4@star:machines=4"
ONE_EACH = [*range(0, 32, 8)]  # the first GPU of each of four machines


@pytest.mark.parametrize("collective", [
    "ring_all_reduce", "direct_all_to_all", "pairwise_all_to_all", "bruck_all_to_all", "recursive_doubling_all_reduce",
    "halving_doubling_all_reduce", "direct_scatter",
])  # fmt: skip
@pytest.mark.parametrize("network", [DGX, CPUS])
def test_engines_agree_on_machines_with_several_message_engines(monkeypatch, collective, network):
    """Each NIC is an engine, beside that for messages inside: 7 go by NVLink while 8 go by the NIC."""
    monkeypatch.setattr(closed_form, "SURE", 0.0)  # which declines here, since paths are not alike
    costs = {
        engine: np.subtract(*(cs.predict(collective, network, "1KiB", engine=engine, overhead=o).time
                              for o in ("10us", "0us")))
        for engine in ("flow", "packet", "alpha-beta", "closed-form")
    }  # fmt: skip
    of_one_engine = costs.pop("closed-form")  # it sends all messages in turn
    assert costs == {engine: pytest.approx(costs["flow"], rel=1e-2) for engine in costs}
    assert of_one_engine >= costs["flow"] * (1 - 1e-2)


@pytest.mark.parametrize("collective", ["ring_all_reduce", "direct_all_to_all", "bruck_all_to_all", "direct_scatter"])
def test_four_engines_agree_on_machines_whose_ranks_have_equal_paths(collective):
    network = "dgx-h100@star:machines=4"
    times = {
        engine: cs.predict(collective, network, "1KiB", engine=engine, overhead="10us", placement=ONE_EACH).time
        for engine in ("flow", "packet", "alpha-beta", "closed-form")
    }
    assert times == {engine: pytest.approx(times["closed-form"], rel=1e-2) for engine in times}


def test_what_is_known_of_messages_is_kept():
    star = cs.load_network("star:n_hosts=4")
    assert (with_default_overhead(star).overhead[star.kind != SWITCH] == DEFAULT_OVERHEAD).all()
    assert not with_default_overhead(star).overhead[star.kind == SWITCH].any()
    free = changed_network(star, overhead="0us")[0]
    assert with_default_overhead(free) is free
    for given in ({"overhead": "3us"}, {"recv_overhead": "1us"}, {"software": "nccl-tcp"}):
        known = changed_network(star, **given)[0]
        assert with_default_overhead(known) is known
        assert known.overhead.max() != DEFAULT_OVERHEAD


@pytest.mark.parametrize("suffix", ["toml", "npz"])
def test_a_network_file_may_say_that_messages_cost_nothing(tmp_path, suffix):
    from commsim.core.files.network_file import read_network, write_network

    free = changed_network("star:n_hosts=4", overhead="0us")[0]
    write_network(free, tmp_path / f"free.{suffix}")
    assert read_network(tmp_path / f"free.{suffix}") == free
    here = cs.predict("ring_all_reduce", str(tmp_path / f"free.{suffix}"), "1MiB").time
    assert here == cs.predict("ring_all_reduce", "star:n_hosts=4", "1MiB", overhead="0us").time


@pytest.mark.parametrize("name", ["dgx-h100", "p4d", "mi300x", "dgx-h100@star:machines=2"])
def test_a_message_between_gpus_of_machines_has_the_latency_of_its_links_alone(name):
    network = cs.load_network(name)
    assert with_default_overhead(network) is network
    free = cs.predict("ring_all_reduce", name, "1KiB", overhead="0us").time
    assert cs.predict("ring_all_reduce", name, "1KiB").time == free


@pytest.mark.parametrize("collective", ["nccl", "nccl_all_gather", "nccl_all_to_all"])
def test_a_library_with_costs_of_its_own_gets_none_in_addition(collective):
    network = "dgx-h100@star:machines=2"
    with_overhead, without = (cs.predict(collective, network, "64KiB", overhead=o).time for o in ("1us", "0us"))
    assert with_overhead == without


def test_processes_of_machines_without_gpus_send_as_plain_hosts():
    name = "cpu_host:n_cpus=4,n_nics=4@star:machines=2"
    network = with_default_overhead(cs.load_network(name))
    assert set(np.flatnonzero(network.overhead)) == set(network.endpoints)
    ideal = cs.predict("pairwise_all_to_all", name, "1KiB", overhead="0us").time
    ours = cs.predict("pairwise_all_to_all", name, "1KiB").time
    assert ours == cs.predict("pairwise_all_to_all", name, "1KiB", overhead="1us").time
    assert ours >= ideal + 7 * DEFAULT_OVERHEAD * (1 - 1e-9)  # one message after another to each of seven others
