"""RCCL's calls on AMD's GPUs: launch and hops, schedules by size, rings over the direct links of a machine."""

from itertools import pairwise

import numpy as np
import pytest

import commsim as cs
from collectives import COLLECTIVES
from commsim.core.checking.check import check
from commsim.core.errors import InputError
from commsim.nccl.rccl_costs import priced, rccl_costs, rings_over_links
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network


@pytest.mark.parametrize(("preset", "generation"), [("mi300x", "cdna3"), ("mi355x", "cdna4")])
def test_a_small_all_reduce_takes_the_launch_and_hops_of_its_schedule(preset, generation):
    known = rccl_costs()[generation]
    pairs = prepare("rccl_all_reduce", preset).predict(1024).time
    ring = prepare("rccl_all_reduce:rings=mesh", preset).predict(1024).time
    assert pairs == pytest.approx(known.launch + 3 * known.hop_ll, rel=0.01)
    assert ring == pytest.approx(known.launch + 15 * known.hop_ll, rel=0.01)


def test_large_calls_take_the_share_of_links_that_messages_reach():
    known = rccl_costs()["cdna4"]
    time = prepare("rccl_all_reduce", "mi355x").predict(2**33).time
    assert time == pytest.approx(2 * 7 / 8 * 2**33 / (7 * 76.8e9 * known.efficiency), rel=0.01)


def test_schedules_and_protocols_go_by_size():
    known = rccl_costs()["cdna4"]
    here = prepare("rccl_all_reduce", "mi355x").launch
    assert here.parameters(known.ll_below)["protocol"] == "ll"
    assert here.parameters(known.ll_below + 1)["protocol"] == "simple"
    assert here.parameters(known.pairs_below)["rings"] == "pairs"
    assert here.parameters(known.pairs_below + 1)["rings"] == "mesh"
    forced = prepare("rccl_all_reduce:protocol=simple,rings=rails", "mi355x").launch.parameters(1024)
    assert (forced["protocol"], forced["rings"]) == ("simple", "rails")


def test_hops_over_a_network_are_those_of_its_plugin():
    near, far = (prepare("rccl_all_reduce", f"mi355x@star:machines={n}").predict(1024).time for n in (2, 4))
    assert far - near > 2 * 5e-6  # up and down one level more of RoCE's LL hop


def test_rings_of_mi250x_go_over_direct_links_and_reach_the_nics_rate():
    network = load_network("mi250x")
    gpus = [network.nodes.index(f"gpu{i}") for i in range(8)]
    rings = rings_over_links(network, gpus)
    linked = set(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    assert len(rings) == 4
    assert all(sorted(ring) == list(range(8)) for ring in rings)
    assert all((gpus[a], gpus[b]) in linked for ring in rings for a, b in pairwise((*ring, ring[0])))
    # 31/32 twice over 4 NICs of 25 GB/s at Slingshot's share; one ring alone is held by a single link of 36 GB/s.
    time = prepare("rccl_all_reduce", "mi250x@star:machines=4").predict(2**30).time
    assert time == pytest.approx(2 * 31 / 32 * 2**30 / (4 * 25e9), rel=0.05)


def test_machines_without_a_ring_of_direct_links_have_none():
    network = load_network("mesh_host:n_gpus=4,layout=pairs")
    assert rings_over_links(network, [network.nodes.index(f"gpu{i}") for i in range(4)]) == ()
    assert rings_over_links(network, [network.nodes.index(f"gpu{i}") for i in range(2)]) == ()


def test_an_all_reduce_between_all_pairs_is_proved_and_is_no_other_operation():
    check(COLLECTIVES["rccl_all_reduce"].build(8, rings="pairs"))
    for name, given in (("rccl_all_gather", {}), ("rccl_all_reduce", {"machines": ((0, 1), (2, 3))})):
        with pytest.raises(InputError, match="rings=pairs is for an all-reduce in one machine"):
            COLLECTIVES[name].build(4, rings="pairs", **given)


@pytest.mark.parametrize("cycles", [((0, 1, 2),), ((0, 1, 2, 2),), ((0, 1, 2, 4),)])
def test_rings_that_miss_a_place_of_a_machine_are_refused(cycles):
    with pytest.raises(InputError, match="each of cycles must hold each place of a machine"):
        COLLECTIVES["rccl_all_reduce"].build(4, cycles=cycles)
    check(COLLECTIVES["rccl_all_reduce"].build(4, cycles=((0, 2, 1, 3), (3, 1, 2, 0))))


def test_only_xgmi_and_nics_are_priced():
    network = load_network("mi355x@star:machines=2")
    after = priced(network, rccl_costs()["cdna4"], "simple")
    changed = after.bandwidth != network.bandwidth
    ends = [(network.nodes[network.src[i]], network.nodes[network.dst[i]]) for i in np.flatnonzero(changed)]
    assert ends
    assert not any("pcie" in name for pair in ends for name in pair)


def test_rccl_plans_an_mi308x_as_an_mi300x():
    ours, known = (cs.predict("rccl_all_reduce", f"{name}@star:machines=2", "16MiB") for name in ("mi308x", "mi300x"))
    assert ours.time == known.time
