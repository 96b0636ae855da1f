import dataclasses
import functools

import numpy as np
import pytest

import commsim as cs
from commsim.core.names.nodes_and_links import find_link
from commsim.core.pinned_routes import PinnedRoutes
from commsim.prediction.build import prepare


def test_hierarchies_of_any_depth_follow_machines_and_racks():
    network = cs.load_network("dgx-a100@leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=16")
    ready = prepare("torus_all_reduce", network)
    assert ready.parameters["dims"] == (2, 2, 8)
    assert "dims are 2x2x8" in str(ready.notes[-1])


def test_dims_that_the_user_gives_are_kept():
    assert prepare("torus_all_reduce:dims=4x4", "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4").parameters[
        "dims"
    ] == (4, 4)


def test_a_grid_that_fits_the_racks_beats_one_that_does_not():
    network = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8,bandwidth=100Gbps,uplink_bandwidth=50Gbps,latency=0us"
    fits, crosses = (
        cs.predict(f"torus_all_reduce{dims}", network, "64MiB", overhead="0us").time for dims in ("", ":dims=8x4")
    )
    assert fits < crosses


def test_predict_reads_sizes_as_text_and_numbers_alike():
    star = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"
    text, number = (
        cs.predict("ring_all_reduce", star, "64MiB", overhead="0us"),
        cs.predict("ring_all_reduce", star, 2.0**26, overhead="0us"),
    )
    assert text == number
    np.testing.assert_allclose(text.time, 6 * (2e-6 + 2**26 / 4 / 12.5e9), rtol=1e-9)


def test_a_schedule_of_other_ranks_is_refused():
    schedule = cs.COLLECTIVES["ring_all_reduce"].build(4)
    with pytest.raises(cs.InputError, match="the schedule has 4 ranks, got n_ranks=3"):
        prepare(schedule, "star:n_hosts=8", n_ranks=3)


@pytest.mark.parametrize(
    "network", ["star:n_hosts=8", "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4", "fat_tree:k=4"]
)
def test_all_engines_agree_on_switches_that_add_whatever_the_tree(network):
    ready, engines = prepare("switchml:pool=3,n_chunks=10", network), ("flow", "alpha-beta", "closed-form")
    flow, critical, closed = (ready.predict(1e6, engine=engine).time for engine in engines)
    np.testing.assert_allclose(flow, closed, rtol=1e-9)
    np.testing.assert_allclose(critical, closed, rtol=1e-9)


def test_a_file_of_a_schedule_brings_its_placement_and_its_routes_unless_another_is_given(tmp_path):
    network, path = cs.load_network("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2"), str(tmp_path / "x.npz")
    program = cs.Program(2, 1)
    program.copy(0, src=0, dst=1)
    over = [find_link(network, name) for name in ("h1:leaf0", "leaf0:spine1", "spine1:leaf1", "leaf1:h2")]
    own = cs.Placement([1, 2], PinnedRoutes.of([(0, 1, 0, over)]))
    cs.save(program.build(), path, network=network, placement=own)
    ready = prepare(path, network)
    assert ready.placement == own
    assert (*map(str, ready.notes),) == (f"{path}: 1 connections take the routes that it pins",)
    assert np.flatnonzero(ready.predict(1e6).link_bytes).tolist() == sorted(over)
    packed = prepare(path, network, placement="packed")
    assert packed.placement == cs.Placement([0, 1])
    assert not (*map(str, packed.notes),)


@pytest.mark.parametrize(
    ("name", "raw", "times"), [("ring_all_reduce", {}, 1), ("parameter_server", {"n_servers": "1"}, 2)]
)
def test_a_collective_is_built_once_unless_helpers_need_seats_of_ranks(name, raw, times, monkeypatch):
    entry, built = cs.COLLECTIVES[name], []

    @functools.wraps(entry.build)
    def build(*args, **parameters):
        built.append(args)
        return entry.build(*args, **parameters)

    counting = dataclasses.replace(entry, build=build)
    monkeypatch.setattr("commsim.prediction.build.collective_entry", lambda _: (counting, raw))
    prepare(name, "star:n_hosts=8")
    assert len(built) == times
