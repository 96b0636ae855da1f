"""Networks as namespaces: everybody is reached, nothing is left, two do not meet."""

import contextlib
import dataclasses
import json
import os

import numpy as np
import pytest
from datagrams import PORT, ears, heard

from commsim.core.errors import BackendError, InputError
from commsim.prediction.inputs import load_network
from commsim.real.testbed import build as room
from commsim.real.testbed.build import build
from commsim.real.testbed.layout import lay_out
from commsim.real.testbed.measure import read_counts
from commsim.real.testbed.own_testbed import temporary_testbed, up
from commsim.real.testbed.places import KEPT, NamesOfTestbed, has_fair_queues
from commsim.real.testbed.places import testbeds as all_testbeds
from switch_model.bpf.commands import output_of

pytestmark = pytest.mark.needs_kernel("testbed")
STAR = "star:n_hosts=3,bandwidth=200Mbps,latency=0s"
CLOS = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=200Mbps,latency=0s"


def name(end):
    return f"b{os.getpid()}{end}"[:16]


@contextlib.contextmanager
def up_for_now(network, end="a"):
    place, layout = NamesOfTestbed(name(end)), lay_out(network)
    warnings = build(place, layout)
    try:
        yield place, layout, warnings
    finally:
        place.remove()


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "bridged"), [(STAR, True), (CLOS, False), ("torus:dims=3,bandwidth=1Gbps", False)])
def test_everybody_hears_everybody_and_every_byte_is_counted(spec, bridged):
    with up_for_now(load_network(spec)) as (place, layout, _):
        assert layout.bridged == bridged
        with ears(place, layout, layout.seats) as sockets:
            before = read_counts(place, layout)
            for a in layout.seats:
                for b in layout.seats:
                    if a != b:
                        sockets[a].sendto(b"%d to %d" % (a, b), (str(layout.address(b)), PORT))
                        told, (sender, _) = sockets[b].recvfrom(9000)
                        assert told == b"%d to %d" % (a, b)
                        assert sender == str(layout.address(a))
            counted = read_counts(place, layout) - before
        leaving = [counted.packets[port.link] for seat in layout.seats for port in layout.ports_of(seat)]
        assert sum(leaving) >= len(layout.seats) * (len(layout.seats) - 1)
        assert (counted.n_bytes >= 14 * counted.packets).all()


@pytest.mark.skipif(not has_fair_queues(), reason="needs tc htb and nft egress, as commsim doctor says")
def test_every_pair_of_hosts_has_a_queue_of_its_own_at_a_port():
    network = load_network("star:n_hosts=4,bandwidth=200Mbps,latency=0s")
    with up_for_now(network) as (place, layout, _), ears(place, layout, layout.seats) as sockets:
        for source in range(3):
            sockets[source].sendto(b"x" * 5000, (str(layout.address(3)), PORT))
            sockets[3].recvfrom(9000)
        (into,) = [p for p in layout.ports if layout.network.link_name(p.link) == "switch0:h3"]
        rows = output_of(["tc", "-s", "-j", "-n", place.namespace(into.node), "qdisc", "show", "dev", into.device])
        sent = [row["bytes"] for row in json.loads(rows) if row["kind"] == "bfifo"]
        assert sorted(n > 5000 for n in sent) == [False, True, True, True]


def test_the_live_switch_can_be_reached_where_the_network_has_its_switch():
    with up_for_now(load_network(STAR)) as (place, layout, _), ears(place, layout, (0, 3)) as sockets:
        sockets[0].sendto(b"hello", (str(layout.address(3)), PORT))
        assert sockets[3].recv(9000) == b"hello"


@pytest.mark.slow
def test_two_testbeds_do_not_meet():
    network = load_network("star:n_hosts=2,bandwidth=200Mbps,latency=0s")
    with (
        up_for_now(network, "a") as (a, layout, _),
        up_for_now(network, "b") as (b, _, _),
        ears(a, layout, (0, 1)) as here,
        ears(b, layout, (0, 1)) as there,
    ):
        here[0].sendto(b"here", (str(layout.address(1)), PORT))
        there[0].sendto(b"there", (str(layout.address(1)), PORT))
        assert heard(here[1]) == [b"here"]
        assert heard(there[1]) == [b"there"]
        a.remove()
        there[0].sendto(b"still", (str(layout.address(1)), PORT))
        assert heard(there[1]) == [b"still"]
        assert {place.name for place in all_testbeds()} >= {b.name}
        assert a not in all_testbeds()


def nothing_is_left(place):
    return not place.namespaces() and not place.directory.exists() and place not in all_testbeds()


@pytest.mark.parametrize("step", ["_set_up", "_route", "_wait_until_running", "output_of"])
@pytest.mark.parametrize("error", [OSError("no such luck"), BackendError("no such luck")])
def test_a_failure_in_the_middle_leaves_nothing(monkeypatch, step, error):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(room, step, fails)
    place = NamesOfTestbed(name("f"))
    with pytest.raises(BackendError, match="no such luck"):
        build(place, lay_out(load_network(CLOS)))
    assert nothing_is_left(place)


def test_an_interrupt_in_the_middle_leaves_nothing(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(room, "_wait_until_running", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build(NamesOfTestbed(name("i")), lay_out(load_network(STAR)))
    assert nothing_is_left(NamesOfTestbed(name("i")))


def test_namespaces_that_are_in_the_way_are_said_and_gone():
    from pyroute2 import netns

    place = NamesOfTestbed(name("w"))
    netns.create(place.namespace(1))
    with pytest.raises(BackendError, match="could not be built, and what there was is gone"):
        build(place, lay_out(load_network(STAR)))
    assert nothing_is_left(place)


def test_a_name_that_is_up_is_refused_and_stays_up():
    with up_for_now(load_network(STAR)) as (place, layout, _):
        with pytest.raises(InputError, match="there is a testbed"):
            build(place, layout)
        found, known = up(place.name)
        assert found == place
        assert known.network == layout.network
        assert len(place.namespaces()) == 4


def test_a_testbed_of_a_run_is_gone_with_it_whatever_happened():
    with pytest.raises(RuntimeError), temporary_testbed(load_network(STAR)) as (place, _):
        assert (KEPT / place.name / "ready").exists()
        raise RuntimeError
    assert nothing_is_left(place)


@pytest.mark.slow
def test_a_bucket_lets_pass_what_its_rate_says_and_counts_what_waits():
    with up_for_now(load_network("star:n_hosts=2,bandwidth=8Mbps,latency=0s")) as (place, layout, _):
        with ears(place, layout, (0, 1)) as sockets:
            before = read_counts(place, layout)
            for _ in range(50):  # 50 frames of 8042 bytes at 1 MB/s are 0.4 s
                sockets[0].sendto(bytes(8000), (str(layout.address(1)), PORT))
            assert len(heard(sockets[1], 0.5)) == 50
            counted = read_counts(place, layout) - before
        (port,) = layout.ports_of(0)
        assert counted.n_bytes[port.link] == pytest.approx(50 * 8042, rel=0.01)
        assert counted.waiting[port.link] > 0  # how much depends on how fast this process sends
        assert counted.dropped.sum() == 0


@pytest.mark.slow
def test_a_queue_that_is_full_drops_and_that_is_counted():
    network = dataclasses.replace(load_network("star:n_hosts=2,bandwidth=8Mbps,latency=0s"), buffer=np.full(4, 40_000))
    with up_for_now(network) as (place, layout, _), ears(place, layout, (0, 1)) as sockets:
        for _ in range(50):
            sockets[0].sendto(bytes(8000), (str(layout.address(1)), PORT))
        arrived = len(heard(sockets[1], 0.5))
        (port,) = layout.ports_of(0)
        assert 5 <= arrived < 50
        assert read_counts(place, layout).dropped[port.link] == 50 - arrived


@pytest.mark.needs_kernel("losses")
def test_a_lossy_link_really_loses_in_its_own_direction():
    network = load_network("star:n_hosts=2,bandwidth=200Mbps,latency=0s")
    network = dataclasses.replace(network, loss=np.where(network.src == 0, 0.2, 0.0))
    with up_for_now(network) as (place, layout, _), ears(place, layout, (0, 1)) as sockets:
        for _ in range(500):
            sockets[0].sendto(b"there", (str(layout.address(1)), PORT))
            sockets[1].sendto(b"back", (str(layout.address(0)), PORT))
        there, back = len(heard(sockets[1], 2.0)), len(heard(sockets[0], 2.0))
    assert back == 500
    assert abs(there - 400) < 5 * np.sqrt(500 * 0.2 * 0.8)
