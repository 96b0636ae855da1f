import pytest

from commsim.core.checking.check import check
from commsim.core.errors import InputError
from commsim.core.placement import Placement
from commsim.run import predict
from commsim.workload.parallel.resharding import STRATEGIES, resharding_schedule, resharding_time
from topologies.star import star

SIZE, BANDWIDTH = 2.0**30, 1.25e9


@pytest.mark.parametrize("n_receivers", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_brings_the_piece_to_all_receivers_in_the_time_of_its_formula(strategy, n_receivers):
    schedule = resharding_schedule(strategy, n_receivers, 32)
    assert schedule.operation == "broadcast"
    check(schedule)
    network = star(n_receivers + 1, BANDWIDTH, 0.0)
    found = predict(schedule, network, SIZE, placement=Placement(network.endpoints[: n_receivers + 1]))
    assert found.time == pytest.approx(resharding_time(strategy, SIZE, BANDWIDTH, n_receivers, n_chunks=32), rel=1e-9)


def test_send_recv_takes_one_time_per_receiver_and_broadcast_hardly_more_than_one():
    once = SIZE / BANDWIDTH
    assert resharding_time("send_recv", SIZE, BANDWIDTH, 16) == 16 * once
    assert once < resharding_time("broadcast", SIZE, BANDWIDTH, 16, n_chunks=100) <= 1.16 * once
    fast_inside = resharding_time("all_gather", SIZE, BANDWIDTH, 4, local_bandwidth=40 * BANDWIDTH)
    assert fast_inside == pytest.approx(once * (1 + 3 / 4 / 40))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resharding_schedule("scatter", 2), "unknown resharding strategy 'scatter'; known: send_recv"),
        (lambda: resharding_schedule("broadcast", 0), "at least 1 receiver and 1 chunk, got 0 and 64"),
        (lambda: resharding_schedule("all_gather", 2000), "at most 1024 receivers, got 2000"),
        (lambda: resharding_time("broadcast", 0.0, 1.0, 1), "size and bandwidths must be positive"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
