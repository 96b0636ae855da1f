import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from benchmarks.accuracy.byteps_fig12 import colocated_time, dedicated_time
from collectives import MAX_CHUNKS
from collectives.servers.parameter_server import parameter_server, parameter_server_cost
from commsim.core.checking.check import check
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.prediction.build import prepare


@given(
    n_ranks=st.integers(1, 12), n_servers=st.integers(1, 12), colocated=st.booleans(), n_partitions=st.integers(1, 4)
)
def test_any_servers_make_an_all_reduce(n_ranks, n_servers, colocated, n_partitions):
    n_servers = min(n_servers, n_ranks) if colocated else n_servers
    schedule = parameter_server(n_ranks, n_servers, colocated, n_partitions)
    check(schedule)
    assert schedule.n_helpers == (0 if colocated or n_ranks == 1 else n_servers)


@pytest.mark.parametrize(("n_ranks", "n_servers"), [(4, 1), (4, 2), (3, 5)])
def test_dedicated_servers_take_and_give_the_vector_of_every_rank(n_ranks, n_servers):
    sent, received, messages = volumes(parameter_server(n_ranks, n_servers, n_partitions=3))
    np.testing.assert_allclose(sent, [1.0] * n_ranks + [n_ranks / n_servers] * n_servers)
    np.testing.assert_allclose(received, sent)
    assert messages.tolist() == [3 * n_servers] * n_ranks + [3 * n_ranks] * n_servers


@pytest.mark.parametrize("n_servers", [1, 2, 5])
def test_a_rank_with_a_colocated_server_sends_what_the_closed_form_says(n_servers):
    sent, received, _ = volumes(parameter_server(5, n_servers, colocated=True))
    assert sent.max() == received.max() == pytest.approx(float(colocated_time(5, n_servers)))
    np.testing.assert_allclose(sent[n_servers:], 1.0)


def test_a_partition_is_pulled_while_the_next_is_pushed():
    link = LogGP(B=1.0)
    once = float(dedicated_time(6, 3))
    for k in (1, 2, 64):
        assert parameter_server_cost(6, 1.0, link, 3, n_partitions=k) == pytest.approx((k + 1) / k * once)


@pytest.mark.parametrize(("n_servers", "partitions"), [(2, 64), (5, 1)])
def test_colocated_servers_need_the_time_of_the_busiest_nic(n_servers, partitions):
    ready = prepare(
        f"parameter_server:colocated=true,n_servers={n_servers}", "star:n_hosts=5,bandwidth=1GB/s,latency=0s"
    )
    assert ready.schedule.n_chunks == n_servers * partitions
    assert ready.predict(1e9).time == pytest.approx(float(colocated_time(5, n_servers)), rel=0.02)


def test_the_summation_rate_of_the_server_decides_when_it_is_slow():
    link = LogGP(B=1.0, gamma=5.0)
    assert parameter_server_cost(4, 1.0, link, 4, n_partitions=1000) == pytest.approx(5.0, rel=0.01)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_servers": 0}, "needs n_servers of at least 1, got n_servers=0"),
        ({"n_servers": -2}, "needs n_servers of at least 1, got n_servers=-2"),
        ({"n_servers": 5, "colocated": True}, r"n_servers must be 1\.\.4, got n_servers=5"),
        ({"n_partitions": 0}, "needs n_partitions of at least 1, got n_partitions=0"),
        ({"n_servers": 4, "n_partitions": MAX_CHUNKS}, f"which is {MAX_CHUNKS // 4} partitions here"),
    ],
)
def test_counts_that_make_no_sense_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        parameter_server(4, **given)


def test_only_symmetrical_colocation_has_a_closed_form():
    for given_ in ({"n_servers": 2}, {"n_partitions": 2}):
        with pytest.raises(InputError, match="closed form for servers on hosts of their own"):
            parameter_server_cost(4, 1.0, LogGP(), colocated=True, **given_)
