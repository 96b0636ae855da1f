"""Links of the packet engine looked at again and again: nothing of the run changes, and the looks add up."""

import numpy as np
import pytest

from commsim.packets.link_samples import LinkWatch
from commsim.packets.links.queues import Fabric
from commsim.packets.transports.spraying import over_path
from commsim.pages.fabric.figures_of_packets import OF_PACKETS, alone
from commsim.pages.figure import NothingToDraw
from commsim.pages.simulated_run import simulate_run
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.prediction.scenario import Wish
from commsim.routing.flaps import read_flaps

NETWORK = load_network("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps,latency=1us")
LOSSY = {"engine": "packet", "transport": over_path("dctcp", rto=1e-4, fabric=Fabric(loss=0.01)), "seed": 3}
PAUSED = {"engine": "packet", "transport": over_path(fabric=Fabric(pause_at=5e4, resume_at=3e4))}
FLAPS = {"engine": "packet", "transport": over_path("dctcp", rto=1e-4),
         "flaps": read_flaps(["link:leaf0:spine0@50us+40us"], NETWORK)}  # fmt: skip


@pytest.mark.parametrize("options", [{"engine": "packet"}, LOSSY, PAUSED, FLAPS])
def test_looking_changes_nothing_and_ends_with_what_the_run_counted(options):
    ready = prepare("pairwise_all_to_all", NETWORK)
    plain = ready.predict(2**21, **options)
    watch = LinkWatch(plain.time, 50)
    seen = ready.predict(2**21, **options, watch=watch)
    assert seen.time == plain.time
    np.testing.assert_array_equal(seen.link_bytes, plain.link_bytes)
    samples = watch.samples(NETWORK.n_links)
    np.testing.assert_array_equal(np.diff(samples.sent, axis=0) >= 0, True)
    # what is in flight when the last message is complete, acknowledgements above all, has left its link too
    np.testing.assert_allclose(samples.sent[-1], plain.link_bytes, rtol=0.02)
    assert samples.counts["sent again"][-1] == plain.counters["retransmissions"]
    assert samples.counts["lost"][-1] == plain.counters["drops_loss"]
    assert 0 < samples.queued.max() <= plain.counters["peak_queue_bytes"]


def test_one_message_by_itself_is_as_slow_as_the_least_that_it_can_take():
    ready = prepare("binomial_broadcast", NETWORK, n_ranks=2)
    (result,) = (ready.predict(2**20, engine="packet"),)
    run = simulate_run("one", ready, 2**20, Wish.of("packet"), result.time)
    took = run.trace.done - run.trace.start
    # headers of 82 in 4,096 bytes are not among the bytes of a run without --header
    assert took == pytest.approx(alone(run) * (1 + 82 / 4096), rel=0.005)


def test_queues_without_a_limit_are_drawn_in_bytes_and_not_as_a_share_of_it():
    ready = prepare("pairwise_all_to_all", NETWORK)
    wish = Wish.of("packet")
    run = simulate_run("all", ready, 2**20, wish, ready.predict(2**20, engine="packet").time)
    table = OF_PACKETS["fullest"](run).table
    assert "share_of_room" not in table
    assert table["queue_B"].values.max() > 4096


def test_every_figure_of_packets_is_drawn_of_a_packet_run_and_of_no_other():
    ready = prepare("pairwise_all_to_all", NETWORK)
    time = ready.predict(2**20, **LOSSY).time
    run = simulate_run("all", ready, 2**20, Wish.of(**LOSSY), time)
    for name, draw in OF_PACKETS.items():
        figure = draw(run)
        assert figure.name == name
        assert figure.table.n_rows > 0
    assert OF_PACKETS["slowdown"](run).table["slowdown"].values.min() >= 1
    flow = simulate_run("all", ready, 2**20, None, ready.predict(2**20).time)
    with pytest.raises(NothingToDraw, match="engine packet"):
        OF_PACKETS["queues"](flow)
