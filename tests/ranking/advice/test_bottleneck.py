import dataclasses

import numpy as np
import pytest

from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.prediction.read import with_costs
from commsim.ranking.advice.bottleneck import BUSY, find_bound, whose_link

STAR = "star:n_hosts=12,bandwidth=8Gbps,latency=1us"
LARGE = 64e6


def bound_of(spec, network, size, n_ranks=8):
    ready = prepare(spec, network, n_ranks=n_ranks)
    result = ready.predict(size, trace=True)
    return find_bound(ready, result), result


def test_a_large_ring_is_bound_by_a_workers_link():
    found, result = bound_of("ring_all_reduce", STAR, LARGE)
    assert found.term == "bandwidth"
    assert found.phrase.startswith(f"bandwidth of a worker's link {found.busiest_link}, busy ")
    assert found.busy == pytest.approx(result.link_bytes.max() / 1e9 / result.time)
    assert sum(found.terms.values()) == pytest.approx(result.time)


def test_few_servers_are_bound_by_their_own_links():
    found, _ = bound_of("parameter_server:n_servers=2", STAR, LARGE)
    assert found.term == "bandwidth"
    assert "a server's link" in found.phrase
    assert {"h8", "h9"} & set(found.busiest_link.split(":"))


def test_racks_that_share_thin_uplinks_are_bound_by_a_link_between_switches():
    network = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=8Gbps,oversubscription=4"
    found, _ = bound_of("parameter_server:colocated=true", network, LARGE)
    assert "the link between switches" in found.phrase


def test_a_small_ring_is_bound_by_latency_and_one_of_costly_messages_by_their_overhead():
    found, _ = bound_of("ring_all_reduce", STAR, 800)
    assert (found.term, found.phrase[:33]) == ("latency", "latency of 14 messages in turn, 9")
    costly = with_costs(load_network(STAR), overhead=1e-3)
    found, result = bound_of("ring_all_reduce", costly, 800)
    assert found.term == "overhead"
    assert found.terms["overhead"] == pytest.approx(14e-3)
    assert result.time == pytest.approx(14e-3, rel=0.01)


def test_where_adding_is_slow_the_node_that_adds_is_named():
    slow = load_network(STAR)
    slow = dataclasses.replace(slow, gamma=np.where(np.arange(slow.n_nodes) == 8, 1e-7, 0.0))
    found, _ = bound_of("parameter_server:n_servers=1", slow, LARGE)
    assert found.term == "reduction"
    assert found.phrase.startswith("reduction at h8, ")


def test_whole_vectors_that_wait_for_each_other_are_said_to_be_rounds():
    found, result = bound_of("binomial_tree_all_reduce", STAR, LARGE)
    assert found.term == "rounds"
    assert found.phrase.startswith("rounds: 6 messages in turn, no link busy above ")
    assert found.busy == pytest.approx(result.link_bytes.max() / 1e9 / result.time)
    assert found.busy < BUSY


def test_a_way_through_the_hosts_memory_is_bound_by_staging():
    found, _ = bound_of("parameter_server:n_servers=1", "dgx-h100", LARGE)
    assert found.phrase.startswith("bandwidth of the staging link")
    found, _ = bound_of("ring_all_reduce", "dgx-h100", 64 * LARGE)
    assert found.phrase.startswith("bandwidth of a link inside a machine, gpu")


def test_alone_there_is_nothing_to_send():
    found, _ = bound_of("ring_all_reduce", STAR, LARGE, n_ranks=1)
    assert (found.term, found.phrase, found.terms) == ("nothing", "nothing to send", {})


def test_links_are_told_apart_by_who_sits_at_their_ends():
    ready = prepare("parameter_server:n_servers=1", STAR, n_ranks=8)
    network = ready.network
    said = {network.link_name(link): whose_link(network, ready.placement, 8, link) for link in range(network.n_links)}
    assert said["h7:switch0"] == said["switch0:h0"] == "a worker's link"
    assert said["h8:switch0"] == said["switch0:h8"] == "a server's link"
    assert said["h9:switch0"] == "the link"
