"""Collectives in namespaces: the bytes on every link are those that were predicted, and the sums are right.

Times are asserted loosely, of the fastest of a few runs, and upwards only where the processors were free: bytes do not
feel what else the machine does, times do."""

import contextlib
import dataclasses
import os
from pathlib import Path

import pytest

from benchmarks.attacks.kill_testbed import VERBS, kill_in_turn, main
from commsim.core.errors import BackendError, InputError
from commsim.prediction.collective_names import load_schedule
from commsim.prediction.inputs import load_network
from commsim.real.testbed.build import build
from commsim.real.testbed.launch import Ranks
from commsim.real.testbed.layout import lay_out
from commsim.real.testbed.places import NamesOfTestbed
from commsim.real.testbed.runs import run_cells
from commsim.real.testbed.share import share
from commsim.real.testbed.switch import measure_switch

pytestmark = pytest.mark.needs_kernel("testbed")
SIZE = 1 << 20
SHORT = {"calibrated": False, "warmup": 1, "iterations": 4, "tries": 1}


@contextlib.contextmanager
def up_for_now(spec, end, routing=None):
    network = load_network(spec)
    place = NamesOfTestbed(f"r{os.getpid()}{end}"[:16])
    layout = lay_out(network if routing is None else dataclasses.replace(network, routing=routing))
    build(place, layout)
    try:
        yield place, layout
    finally:
        place.remove()


@pytest.fixture(scope="module")
def star():
    with up_for_now("star:n_hosts=4,bandwidth=200Mbps,latency=0s", "star") as found:
        yield found


@pytest.fixture(scope="module")
def clos():
    """Two to one: two hosts at 200 Mbit/s under a leaf with two uplinks of half of that."""
    spec = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=200Mbps,uplink_bandwidth=100Mbps,latency=0s"
    with up_for_now(spec, "clos", "dmodk") as found:
        yield found


def meets_its_prediction(cell, bytes_within=0.01):
    assert cell.result.counters["wrong"] == 0
    assert cell.bytes_error <= bytes_within
    assert cell.counts.dropped.sum() == 0
    assert cell.result.samples.min() > 0.5 * cell.predicted.time
    if not cell.invalid:  # as when other tests run beside this one
        assert cell.result.samples.min() < 2 * cell.predicted.time


@pytest.mark.deep
@pytest.mark.slow
def test_bytes_on_every_link_of_a_star_are_those_predicted_over_mpi(star):
    cells, costs = run_cells(*star, ("ring_all_reduce", "pairwise_all_to_all"), [SIZE], **SHORT)
    assert sorted(name for name, _ in cells) == ["pairwise_all_to_all", "ring_all_reduce"]
    assert costs is None
    for name, cell in cells:
        assert cell.result.collective == name
        meets_its_prediction(cell)


@pytest.mark.slow
def test_bytes_on_every_link_behind_routers_are_those_predicted_over_mpi(clos):
    assert not clos[1].bridged
    ((_, cell),), _ = run_cells(*clos, ("ring_all_reduce",), [SIZE], placement="spread", **SHORT)
    meets_its_prediction(cell)
    inner = [port.link for port in clos[1].ports if port.node not in clos[1].seats]
    assert cell.predicted.link_bytes[inner].max() > 0


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.torch
def test_ours_and_the_native_all_reduce_are_right_over_gloo(star):
    pytest.importorskip("torch")
    cells, _ = run_cells(*star, ("ring_all_reduce",), [SIZE], native=("all_reduce",), backend="gloo", **SHORT)
    found = dict(cells)
    meets_its_prediction(found["ring_all_reduce"])
    meets_its_prediction(found["all_reduce"])
    assert found["all_reduce"].result.collective == "native all_reduce"


@pytest.mark.slow
def test_the_live_switch_adds_rightly_and_its_packets_are_those_predicted():
    with up_for_now("star:n_hosts=4,bandwidth=50Mbps,latency=0s", "live") as (place, layout):
        cell = measure_switch(place, layout, layout.seats, SIZE // 4, iterations=2)
        meets_its_prediction(cell, bytes_within=0.015)
        assert place.processes() == []


@pytest.mark.deep
@pytest.mark.slow
def test_a_sparse_all_reduce_is_right_and_sends_what_was_predicted(star):
    spec = "omnireduce:density=0.1,block=256,n_aggregators=1,n_partitions=1"
    ((_, cell),), _ = run_cells(*star, (spec,), [SIZE], n_ranks=3, **SHORT)
    assert cell.result.counters["wrong"] == 0
    assert cell.result.n_ranks == 3
    assert cell.bytes_error <= 0.05  # small messages: headers of their own, and acknowledgements


@pytest.mark.deep
@pytest.mark.slow
def test_two_jobs_at_once_are_measured_beside_each_other(clos):
    schedules = [load_schedule("ring_all_reduce", 2)] * 2
    unshifted, shifted = share(*clos, schedules, [(0, 2), (1, 3)], SIZE // 4, (0.0, 0.1), compute=0.1, iterations=3)
    for one, shift in ((unshifted, 0.0), (shifted, 0.1)):
        assert one.shift == shift
        assert one.times.shape == (2, 3)
        assert (one.times > 0.5 * one.alone[:, None]).all()
    assert clos[0].processes() == []


def test_jobs_that_share_a_host_or_start_before_time_are_refused(clos):
    schedules = [load_schedule("ring_all_reduce", 2)] * 2
    with pytest.raises(InputError, match="simultaneous jobs must be on different hosts"):
        share(*clos, schedules, [(0, 1), (1, 2)], SIZE, (0.0,), compute=0.1)
    with pytest.raises(InputError, match="must not be negative"):
        share(*clos, schedules, [(0, 1), (2, 3)], SIZE, (-1.0,), compute=0.1)


def test_ranks_that_sit_nowhere_or_together_are_refused(star):
    for seats in ((0, 0), (0, 4)):
        with pytest.raises(InputError, match="ranks of a testbed must be on different hosts"):
            Ranks(*star, seats)
    with pytest.raises(InputError, match="unknown backend 'nccl'; a testbed knows mpi, gloo"):
        Ranks(*star, (0, 1), "nccl")


def test_ranks_that_are_killed_are_told_of_and_leave_nothing(star):
    with pytest.raises(BackendError, match="the ranks do not answer"), Ranks(*star, (0, 1)) as ranks:
        for pid in star[0].processes():
            with contextlib.suppress(ProcessLookupError):  # mpiexec takes its ranks along
                os.kill(pid, 9)
        ranks.run("all_reduce", SIZE)
    assert star[0].processes() == []
    assert not list(star[0].directory.glob("ranks-*"))


# Processes that are killed at random moments, and testbeds that are taken away all the same.
@pytest.mark.slow
def test_the_launcher_of_mpi_leaves_no_file_when_it_is_killed(star):
    before = set(Path("/tmp").glob("hydra*"))
    with pytest.raises(BackendError, match="the ranks do not answer"), Ranks(*star, (0, 1)) as ranks:
        assert set(Path("/tmp").glob("hydra*")) == before
        for process in ranks._processes:
            process.kill()
        ranks.prepare("all_reduce", 1024)
    assert set(Path("/tmp").glob("hydra*")) == before


def test_nothing_is_left_of_testbeds_whose_process_is_killed():
    about = {"up": 1.2, "run": 4.0, "down": 0.6}
    kills, durations = kill_in_turn(4, 1, "star:n_hosts=3,bandwidth=200Mbps,latency=0s", about)
    assert durations == about
    assert [kill.verb for kill in kills] == [*VERBS, "up"]
    assert all(0 <= kill.moment <= durations[kill.verb] for kill in kills)
    assert [kill.left for kill in kills] == [()] * 4
    assert kills[2].begun  # what is to be taken down was there


def test_without_root_there_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    assert main(["--times", "1"]) == 2
    refused = "benchmarks.attacks.kill_testbed: error: a testbed needs Linux and root: it makes network namespaces"
    assert capsys.readouterr().err.strip() == refused
