import numpy as np
import pytest

import commsim as cs
from commsim.run import prepare


def test_hierarchies_of_any_depth_follow_machines_and_racks():
    network = cs.load_network("dgx-a100@leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=16")
    ready = prepare("torus_all_reduce", network)
    assert ready.parameters["dims"] == (2, 2, 8)
    assert "dims are 2x2x8" in ready.notes[-1]


def test_dims_that_the_user_gives_are_kept():
    assert prepare("torus_all_reduce:dims=4x4", "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4").parameters[
        "dims"
    ] == (4, 4)


def test_a_grid_that_fits_the_racks_beats_one_that_does_not():
    network = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8,bandwidth=100Gbps,oversubscription=8,latency=0us"
    fits, crosses = (cs.predict(f"torus_all_reduce{dims}", network, "64MiB").time for dims in ("", ":dims=8x4"))
    assert fits < crosses


def test_predict_reads_sizes_as_text_and_numbers_alike():
    star = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"
    text, number = cs.predict("ring_all_reduce", star, "64MiB"), cs.predict("ring_all_reduce", star, 2.0**26)
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
