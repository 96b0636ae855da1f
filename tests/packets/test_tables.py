"""How much memory the tables of a run take: entries are counted, not bytes that the system gave."""

import dataclasses

import numpy as np
import pytest
from one_path import Dctcp, Window, play

from collectives import COLLECTIVES
from commsim.core.placement import place
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.packets import run_packets as messages
from commsim.packets.event_rows import TAP_ROW
from commsim.packets.finished_run import times_of
from commsim.packets.links import link_tables
from commsim.packets.links.queues import Fabric
from topologies.star import star


def ring(**links: float) -> FlowPlan:
    network = dataclasses.replace(star(4, 12.5e9, 1e-6), **links)
    return plan_flows(network, [FlowJob(COLLECTIVES["ring_all_reduce"].build(4), place(network, 4))])


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_a_window_of_packets_needs_an_entry_for_each_of_them(loss: float) -> None:
    """Each flow had 4,096 entries for what may come early, 20 KB: 21 MB for a ring of 1,024 hosts."""
    run = play(ring(), 4e6, transport=Window(12 * 4096.0), fabric=Fabric(loss=loss))
    assert (run.tables.fabric.flow["ring_mask"] == 15).all()
    assert run.counters["n_resent"] >= 100 * loss
    free = play(ring(), 4e6, transport=Dctcp(), fabric=Fabric(loss=loss))
    assert (free.tables.fabric.flow["ring_mask"] >= 1023).all()


def test_a_message_takes_forty_bytes() -> None:
    fabric = play(ring(), 1e6).tables.fabric
    assert fabric.message.nbytes + fabric.times.nbytes == 40 * len(fabric.message)


def test_times_of_many_messages_take_the_place_of_what_the_kernels_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ring(latency=3e-6)
    few = play(plan, 1e6)
    monkeypatch.setattr(messages, "MANY", 0)
    many = play(plan, 1e6)
    for name in ("bytes_on_wire", "start", "sent", "done"):
        np.testing.assert_array_equal(getattr(many.times, name), getattr(few.times, name))
    assert np.shares_memory(many.times.done, many.tables.fabric.times)
    assert few.times.done.tolist() == times_of(few.tables.fabric).done.tolist()
    assert many.results[0].time == few.results[0].time


def test_a_full_table_grows_where_it_is_and_by_a_32nd_where_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    tap = link_tables.more_records("tap", np.zeros(0, TAP_ROW), 0, 8, 0)
    tap["number"] = np.arange(len(tap))
    assert link_tables.more_records("tap", tap, len(tap) - 8, 8, 0) is tap
    n = len(tap)
    doubled = link_tables.more_records("tap", tap, n - 7, 8, 0)
    assert doubled is tap
    assert len(tap) == 2 * n
    monkeypatch.setattr(link_tables, "LARGE", 1000)
    assert len(link_tables.more_records("tap", tap, 2 * n, 8, 0)) == 2 * n + n // 16
    assert tap["number"].tolist() == [*range(n), *[0] * (n + n // 16)]
