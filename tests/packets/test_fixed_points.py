"""What transports settle at, and how fast, against the formulas of their papers."""

import math

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network
from commsim.packets.transports.spraying import Spraying
from commsim.traffic.host_messages import run_messages
from commsim.traffic.patterns import HostMessages, incast
from topologies.star import star

MTU = 4160


class Watched:
    """A run of several senders to one receiver, looked at every so often."""

    def __init__(self, transport, senders, size, rate, hop=1e-6, starts=0.0, sample=1e-5, **more):
        network = star(senders + 1, bandwidth=rate, latency=hop)
        sent = incast(senders + 1, size // senders, senders=senders)
        sent = HostMessages(sent.src, sent.dst, sent.nbytes, np.arange(senders) * starts)
        self.run = run_messages(network, sent, Spraying(transport, "ecmp", 1, sample=sample, **{"queue": 1e8, **more}))
        self.rtt, self.rate = self.run.rules["rtt"], rate
        up = [int(np.flatnonzero(network.src == network.hosts[h])[0]) for h in sent.src]
        last = int(np.flatnonzero(network.dst == network.hosts[sent.dst[0]])[0])
        taken = self.run.samples(network)
        at, self.marked = taken.times[1:], taken.counts["marked"][1:]
        self.at, self.times = at, (at[1:] + at[:-1]) / 2
        self.rates = np.diff(taken.sent[1:, up], axis=0) / np.diff(at)[:, None]
        self.load = np.diff(taken.sent[1:, last]) / np.diff(at) / rate
        self.queue = taken.queued[2:, last]
        end = self.run.finished.min()
        self.steady = (self.times > 0.4 * end) & (self.times < 0.95 * end)

    def decay(self, begin, end, parts=40):
        """How fast the difference of the first two rates vanishes, 1/s."""
        there = (self.times > begin) & (self.times < end)
        time, apart = self.times[there], (self.rates[:, 0] - self.rates[:, 1])[there] / self.rate
        n = len(time) // parts * parts
        time, apart = time[:n].reshape(parts, -1).mean(1), np.abs(apart[:n].reshape(parts, -1).mean(1))
        return -np.polyfit(time[apart > 0.01], np.log(apart[apart > 0.01]), 1)[0]


@pytest.mark.parametrize("senders", [2, 8])
def test_hpcc_settles_at_its_load_and_a_step_of_each_sender(senders):
    # SIGCOMM 2019: W = W load / U + step, so U = load + n step / (rate times round trip), and no queue
    seen = Watched("hpcc:flows=16", senders, 200_000_000, 12.5e9, hop=3e-6, payload=1000)
    assert seen.load[seen.steady].mean() == pytest.approx(0.95 + senders * 0.05 / 16, rel=0.01)
    assert seen.queue[seen.steady].mean() < MTU
    shares = seen.rates[seen.steady].mean(0) / seen.rates[seen.steady].mean()
    if senders > 2:  # two senders in step see different queues, and keep different rates
        np.testing.assert_allclose(shares, 1.0, atol=0.05)


def line(n_switches, at, rate, latency):
    """Switches in a line, and a host on each of those in `at`; all links alike."""
    n = len(at)
    switches = np.arange(n, n + n_switches)
    here, there = np.append(np.arange(n), switches[:-1]), np.append(n + np.array(at), switches[1:])
    nodes = tuple(f"n{i}" for i in range(n + n_switches))
    ends = np.append(here, there), np.append(there, here)
    return Network("line", nodes, [HOST] * n + [SWITCH] * n_switches, *ends, np.full(2 * len(here), rate), latency)


@pytest.mark.parametrize(("n_switches", "each"), [(3, 1), (5, 1), (3, 4)])
def test_hpcc_fills_every_bottleneck_of_a_long_path_to_its_load(n_switches, each):
    # each link between two switches has `each` messages along the whole line and as many over it alone, so that all
    # paths have 3 to 6 hops, and long ones several bottlenecks; the load is that of the fixed point above at each
    rate, senders = 12.5e9, 2 * each
    at = each * [0, n_switches - 1, *(k for i in range(n_switches - 1) for k in (i, i + 1))]
    network, (src, dst) = line(n_switches, at, rate, 3e-6), np.arange(len(at), dtype=np.int32).reshape(-1, 2).T
    sent = HostMessages(src, dst, np.full(len(src), 40_000_000), np.zeros(len(src)))
    run = run_messages(network, sent, Spraying("hpcc:flows=16", "ecmp", 1, payload=1000, queue=1e8, sample=2e-5))
    taken = run.samples(network)
    middle, end = (taken.times[1:] + taken.times[:-1]) / 2, run.finished.min()
    steady = (middle > 0.4 * end) & (middle < 0.95 * end)
    between = (network.src >= len(at)) & (network.dst == network.src + 1)
    load = (np.diff(taken.sent[:, between], axis=0) / np.diff(taken.times)[:, None])[steady].mean(0) / rate
    np.testing.assert_allclose(load, 0.95 + senders * 0.05 / 16, rtol=0.01)
    assert taken.queued[1:, between][steady].mean(0).max() < MTU
    over_one = run.finished.reshape(each, -1)[:, 1:]
    assert over_one.max() < run.finished.reshape(each, -1)[:, 0].min()  # what crosses more bottlenecks gets less


@pytest.mark.parametrize("stages", [5, 10, 20])
def test_hpcc_takes_a_free_link_after_its_stages(stages):
    # section 3.3: `stages` round trips of small steps while the load is low, then one that multiplies up to it
    seen = Watched(
        f"hpcc:stages={stages},flows=4", 2, 20_000_000, 12.5e9, hop=3e-6, payload=1000, starts=4e-4, sample=3e-6
    )
    alone = seen.run.finished[0] - seen.rtt / 2  # when the last packet of the first sender arrives
    taken = seen.times[(seen.times > alone) & (seen.load > 0.5 * (0.5 + 0.95))][0]
    assert (taken - alone) / seen.rtt == pytest.approx(stages, rel=0.05)


@pytest.mark.parametrize("senders", [2, 8])
def test_patched_timely_settles_at_its_queue_and_equal_rates(senders):
    # CoNEXT 2016, theorem 5: q* = q' (1 + n step / (shrinking rate))
    rate, step = 1.25e9, 1.25e6
    seen = Watched(f"patched_timely:low=60us,high=500us,begin={1 / senders}", senders, 100_000_000, rate)
    reference = rate * (60e-6 - seen.rtt)
    queue = seen.queue[seen.steady].mean()
    assert queue == pytest.approx(reference * (1 + senders * step / (0.008 * rate)), rel=0.05)
    shares = seen.rates[seen.steady].mean(0)
    np.testing.assert_allclose(shares, rate / senders, rtol=0.01)


def test_patched_timely_becomes_fair_as_fast_as_its_fluid_model():
    # at the fixed point the gradient's weight is a half: dD/dt = -D n step / (2 rate tau), tau a segment's time
    rate, step, size = 1.25e9, 1.25e6, 16384
    name = "patched_timely:low=60us,high=500us,begin=0.6"
    seen = Watched(name, 2, 100_000_000, rate, starts=5e-3, sample=1e-4)
    assert seen.decay(0.02, 0.06) == pytest.approx(2 * step / (2 * rate * (2 * size / rate)), rel=0.2)


@pytest.mark.parametrize("senders", [2, 8])
def test_swift_keeps_its_target(senders):
    # windows move around the target: of queueing, as the round trip without queues is not part of it here
    seen = Watched("swift:target=50us,scaling=1ns", senders, 60_000_000, 12.5e9)
    assert seen.queue[seen.steady].mean() / seen.rate == pytest.approx(50e-6, rel=0.05)
    assert seen.load[seen.steady].mean() == pytest.approx(1.0, abs=1e-3)


def marked_of_dctcp(threshold, senders, base):
    """DCTCP's window when marks begin and the share of packets that are marked, with `base` packets under way.

    Marks are set where a queue is left, so they last as long as their news and the cut take without queues: `fresh`
    round trips. One round trip without growth follows, then a cut's (window + 1) share / 2 of growth.
    """
    window, fresh = (base + threshold) / senders, base / (base + threshold)
    return window, fresh, (math.sqrt(1 + 2 * (window + 1) * fresh) - 1) / (window + 1)


@pytest.mark.parametrize("threshold", [40, 90])
def test_dctcp_keeps_the_queue_of_its_rule(threshold):
    # SIGCOMM 2010, section 3.3, with marks on leaving and no growth in the round trip after a cut
    rate, senders, marks = 12.5e9, 2, (threshold * MTU, threshold * MTU)
    seen = Watched("dctcp", senders, 120_000_000, rate, hop=5e-6, ecn=marks, window=20 * MTU)
    # marks count the packet that is being sent, and samples do not
    queue, shares = seen.queue[seen.steady] / MTU + 1, seen.rates[seen.steady].mean(0)
    window, fresh, share = marked_of_dctcp(threshold, senders, rate * seen.rtt / MTU)
    assert queue.max() == pytest.approx(threshold + senders, rel=0.05)
    assert queue.mean() == pytest.approx(threshold + senders * fresh - senders * window * share / 4, rel=0.01)
    assert seen.load[seen.steady].mean() == pytest.approx(1.0, abs=1e-3)
    marked = np.diff(seen.marked)[seen.steady].sum() / np.diff(seen.at)[seen.steady].sum()
    assert marked / (rate / MTU) == pytest.approx(share, rel=0.1)
    assert shares.sum() ** 2 / (senders * (shares**2).sum()) > 0.99  # Jain's index, as in its section 4.1


@pytest.mark.parametrize("threshold", [40, 60])
def test_dctcp_becomes_fair_as_fast_as_equal_shares_of_marks_say(threshold):
    # as SIGMETRICS 2011, section 4: each cut by share / 2 shrinks differences so much
    rate, marks = 12.5e9, (threshold * MTU, threshold * MTU)
    apart, after = [], np.arange(0, 6e-3, 1e-4)
    for start in 2e-3 + 17.3e-6 * np.arange(16):  # cuts of one run come at other times than those of the next
        seen = Watched("dctcp", 2, 250_000_000, rate, hop=5e-6, ecn=marks, window=20 * MTU, starts=start, sample=5e-5)
        apart.append(np.interp(after, seen.times - start, (seen.rates[:, 0] - seen.rates[:, 1]) / rate))
    window, _, share = marked_of_dctcp(threshold, 2, rate * seen.rtt / MTU)
    period = ((window + 1) * share / 2 + 1) * (seen.rtt + threshold * MTU / rate)
    expected = -math.log(1 - share / 2) / period
    there = (after > 0.1 / expected) & (after < 1.0 / expected)
    found = -np.polyfit(after[there], np.log(np.mean(apart, 0)[there]), 1)[0]
    assert found == pytest.approx(expected, rel=0.2)


def marked_share(senders, rate):
    """DCQCN's fixed point: the share of marked packets at which what a cut takes, the rises until the next one give.

    Between two cuts there are k rises by time, at least k with the chance q^k, where q = (1 - p)^n is the chance that
    none of the n packets of an interval is marked; the estimate of congestion settles at 1 - q. A cut takes
    (1 - q) / 2 of the rate R, k rises give back all but 2^-k of it, and each after the fifth adds `step` to the aim.
    The means balance where (1 - q)^3 R = q^6 step.
    """
    from scipy.optimize import brentq

    n, step, recovery = 55e-6 * rate / senders / MTU, 5e6 * senders / rate, 5
    q = brentq(lambda q: (1 - q) ** 3 - q ** (recovery + 1) * step, 0.1, 1 - 1e-6)
    return 1 - q ** (1 / n)


@pytest.mark.parametrize("senders", [8, 16])
def test_dcqcn_settles_where_cuts_and_rises_balance(senders):
    rate = 5e9
    seen = Watched("dcqcn", senders, senders * 150_000_000, rate, sample=4e-5, ecn=(5e3, 2e6, 0.1))
    expected = 5e3 + marked_share(senders, rate) / 0.1 * 1.995e6
    assert seen.queue[seen.steady].mean() == pytest.approx(expected, rel=0.05)
    np.testing.assert_allclose(seen.rates[seen.steady].mean(0), rate / senders, rtol=0.1)


def test_notifications_that_the_nic_holds_back_deepen_the_queue():
    # a real switch saw pauses that simulators without the NIC's 55 us did not
    deepest = [
        Watched(f"dcqcn:notify_delay={delay}", 8, 40_000_000, 5e9).run.results[0].counters["peak_queue_bytes"]
        for delay in ("0us", "55us")
    ]
    # eight senders at line rate go on for as long: seven times the rate too much
    assert deepest[1] - deepest[0] > 0.5 * 7 * 5e9 * 55e-6 * 0.5


def test_samples_are_the_links_own_counts():
    network = star(4, bandwidth=1e10, latency=1e-6)
    run = run_messages(network, incast(4, 1_000_000, senders=3), Spraying("nscc", sample=5e-6))
    taken, peak = run.samples(network), run.tables.fabric.link["peak"]
    assert (np.diff(taken.times) > 0).all()
    assert (np.diff(taken.sent, axis=0) >= 0).all()
    assert (taken.sent[-1] <= run.results[0].link_bytes).all()
    assert (taken.queued.max(0)[run.layout.ways.links] <= peak).all()
    assert taken.queued.max() > 0
    for name, counter in (("sent again", "n_resent"), ("trimmed", "n_trimmed"), ("marked", "n_marked")):
        assert (np.diff(taken.counts[name]) >= 0).all()
        assert taken.counts[name][-1] <= run.counters[counter]
    assert min(taken.counts[name][-1] for name in ("trimmed", "marked")) > 0  # three senders overflow a queue


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("hpcc:eta=1", "hpcc has no parameter 'eta'"),
        ("hpcc:load=1.5", "load is a share above 0 and at most 1, got 1.5"),
        ("timely:low=50us,high=20us", "low is less than high"),
        ("dcqcn:notify_delay=200us", "at most twice notify_every"),
        ("dcqcn:rise_time=0us", "rise_time is above 0, got 0"),
        ("nscc:gain=1", "nscc takes no constants, got gain"),
        ("swift:target=3", "target"),
    ],
)
def test_constants_that_cannot_be_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        Spraying(wrong, "ecmp")


def test_hpcc_needs_one_path():
    with pytest.raises(InputError, match="balancing ecmp, flowlet or path"):
        Spraying("hpcc", "mixed")
    assert Spraying("hpcc", "mixed", 1).settled[0].one_path
