import dataclasses

import pytest

from commsim.advice import Question
from commsim.advice.server_gains import GAIN, server_gains
from commsim.core.parameter_servers import byteps_split
from commsim.inputs import load_network

STAR = "star:n_hosts=16,bandwidth=100Gbps,latency=1us"
QUESTION = Question(8, 4 * 2**20, (0.01,))


def test_byteps_gains_by_every_server_on_equal_links_as_theorem_1_says():
    network = load_network(STAR)
    found = server_gains(dataclasses.replace(QUESTION, size=1e9).on(network), network)
    assert list(found.simulated) == list(range(9))
    assert found.enough == found.enough_in_theory == 8
    for k, time in found.simulated.items():
        assert found.theory[k] == float(byteps_split(8, k).time)
        assert time == pytest.approx(found.theory[k] * 1e9 / 12.5e9, rel=0.03)


def test_two_workers_need_no_server_and_behind_thin_uplinks_many_are_worse_than_few():
    network = load_network(STAR)
    assert server_gains(dataclasses.replace(QUESTION, n_workers=2).on(network), network).enough_in_theory == 0
    thin = load_network("leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=8,bandwidth=100Gbps,oversubscription=8")
    found = server_gains(QUESTION.on(thin), thin)
    assert found.enough < 8 == found.enough_in_theory
    assert found.simulated[found.enough] <= min(found.simulated.values()) * (1 + GAIN)
    assert found.simulated[8] > found.simulated[0]
