"""Numbers of hosts that are equal, and switches that nothing passes, are no input."""

import dataclasses
import random

import numpy as np
import pytest
from drawn_questions import ENGINES, drawn_questions

from collectives import COLLECTIVES
from commsim.core.network import SWITCH

HOSTS_A_LEAF, N_LEAVES = 4, 3
ALL_EQUAL = ("star:n_hosts=12", "fully_connected:n_hosts=12")
# With one spine there is one path, and no hash of its ends.
BY_LEAF = (f"leaf_spine:n_leaves={N_LEAVES},n_spines=1,hosts_per_leaf={HOSTS_A_LEAF},oversubscription=2",)
# Packets that arrive in the same picosecond go in the order of their flows, which numbers of hosts decide. The largest
# change over 400 drawn questions was 2.9 %.
ORDER_OF_PACKETS = 0.03
SERVERS = {"servers", "aggregators"}


def renumbered(draw, network):
    """Draw an order of the hosts that the network cannot tell from theirs."""
    if "leaf_spine" not in network.name:
        return draw.sample(range(len(network.hosts)), len(network.hosts))
    leaves = [draw.sample(range(i, i + HOSTS_A_LEAF), HOSTS_A_LEAF) for i in range(0, len(network.hosts), HOSTS_A_LEAF)]
    return [host for leaf in draw.sample(leaves, N_LEAVES) for host in leaf]


def has_server(collective):
    """Whether free hosts are servers, the first by their numbers: hosts of its leaf are then near to it."""
    return collective in ("atp", "parallax") or not SERVERS.isdisjoint(COLLECTIVES[collective].metadata["needs"])


@pytest.mark.sample(4)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("networks", [ALL_EQUAL, BY_LEAF])
def test_equal_hosts_may_change_places(engine, networks):
    for question, answer in drawn_questions(engine, networks=networks, n=12):
        if networks is BY_LEAF and has_server(question.collective):
            continue
        hosts = renumbered(random.Random(str(question)), question.network)
        again = question.ask(placement=hosts[: question.n_ranks]).time
        assert again == pytest.approx(answer.time, rel=ORDER_OF_PACKETS if engine == "packet" else 1e-12, abs=0), (
            question
        )


def with_unused_switches(network):
    """Return a network with two more switches: a cable from one to the other, and from one to a switch or host."""
    first, second = network.n_nodes, network.n_nodes + 1
    near = int(np.flatnonzero(network.kind == SWITCH)[0]) if (network.kind == SWITCH).any() else 0
    of_links = {
        name: np.append(getattr(network, name), getattr(network, name)[[0] * 4])
        for name in ("bandwidth", "latency", "buffer", "loss", "metric")
    }
    of_nodes = {
        name: np.append(getattr(network, name), [value] * 2)
        for name, value in (("kind", SWITCH), ("forwards", True), ("aggregates", False), ("overhead", 0.0),
                            ("recv_overhead", 0.0), ("gamma", 0.0), ("machine", -1), ("message_engines", 1))
    }  # fmt: skip
    dims = network.coordinates.shape[1]
    return dataclasses.replace(
        network, nodes=(*network.nodes, "unused0", "unused1"), **of_links, **of_nodes,
        src=np.append(network.src, [near, first, first, second]),
        dst=np.append(network.dst, [first, near, second, first]),
        coordinates=np.vstack([network.coordinates, np.full((2, dims), -1, np.int32)]),
    )  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_switches_that_nothing_passes_change_nothing(engine):
    for question, answer in drawn_questions(engine):
        assert question.ask(network=with_unused_switches(question.network)).time == answer.time, question
