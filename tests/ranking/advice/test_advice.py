import itertools

import pytest

from commsim import predict
from commsim.core.jit import Kernel
from commsim.engine.flow_paths import COMPILES as EVENTS
from commsim.extensions import found_at
from commsim.prediction.inputs import load_network
from commsim.ranking.advice.advise import Question, advise
from commsim.ranking.contenders import COMPILES as REGULAR

STAR = "star:n_hosts=16,bandwidth=100Gbps,latency=1us"
QUESTION = Question(8, 4 * 2**20, (0.01,))


def test_advice_is_in_the_order_of_times_and_one_of_each_group():
    network = load_network(STAR)
    advice = advise(QUESTION.on(network), network)
    times = [row.result.time for row in advice.ranked]
    assert all(b >= a * (1 - 1e-9) for a, b in itertools.pairwise(times))
    groups = [row.candidate.group for row in advice.ranked]
    assert len(groups) == len(set(groups))
    for row in advice.ranked:
        again = predict(row.candidate.spec, network, QUESTION.size, n_ranks=8, overhead="0us")
        assert (again.time, again.bytes_on_wire) == (row.result.time, row.result.bytes_on_wire)
        assert row.result.trace is None


@pytest.mark.parametrize(("densities", "place"), [((0.01,), EVENTS), ((), REGULAR)])
def test_a_second_process_compiles_what_messages_of_these_sizes_need(densities, place, monkeypatch):
    """Sparse messages differ, so that each is an event; recurrences, which dense ones need, were compiled in vain."""
    monkeypatch.setattr(Kernel, "needed_soon", "")
    network = load_network(STAR)
    advise(Question(8, 2**20, densities).on(network), network)
    assert Kernel.needed_soon == place
    assert callable(found_at(place))
