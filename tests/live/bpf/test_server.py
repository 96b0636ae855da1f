"""Real workers and real packets, on cables between network namespaces."""

import json
import signal
import subprocess
import sys

import pytest

from benchmarks.switch import switch_world
from benchmarks.switch.switch_world import SWITCH_ADDRESS, SwitchWorld, line_of
from switch_model.bpf.attachment import _detach_dead, alone, attachments
from switch_model.bpf.commands import output_of, records_of

pytestmark = [
    pytest.mark.needs_kernel("bpf", "namespaces"),
    pytest.mark.skipif(bool(switch_world.lacking()), reason=switch_world.lacking() or "all there"),
]


@pytest.fixture(scope="module")
def world():
    with SwitchWorld(4) as world:
        yield world


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("elements", [64, 256])
def test_sums_are_exact_and_every_packet_is_counted(world, elements):
    switch = world.serve(elements)
    said = world.workers(elements, 100_003, tensors=2)
    counted = world.counters(switch)
    packets = 2 * -(-100_003 // elements)
    assert all(worker["exact"] for worker in said)
    assert counted["complete"] == counted["first"] == packets
    assert counted["add"] == 3 * packets
    repeated = sum(worker["repeated"] for worker in said)
    assert counted["packets_in"] <= 4 * packets + repeated
    assert counted["packets_out"] == 4 * packets + counted["answered"]
    assert not any(n for name, n in counted.items() if name.startswith("dropped"))


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize(("n_hosts", "elements"), [(2, 256), (8, 64)])
def test_sums_are_exact_with_other_numbers_of_workers(n_hosts, elements):
    with SwitchWorld(n_hosts) as world:
        switch = world.serve(elements)
        assert all(worker["exact"] for worker in world.workers(elements, 20_000))
        assert world.counters(switch)["complete"] == -(-20_000 // elements)


def test_sums_are_exact_though_the_switch_loses_packets_both_ways(world):
    switch = world.serve(256, drop=0.02)
    said = world.workers(256, 100_000, rto=0.02)
    counted = world.counters(switch)
    assert all(worker["exact"] for worker in said)
    assert counted["complete"] == 391
    assert counted["dropped_injected_in"] > 5
    assert counted["dropped_injected_out"] > 5
    assert counted["answered"] > 0


def test_sums_are_exact_though_the_cables_lose_packets_both_ways():
    with SwitchWorld(2, loss=0.02) as world:
        switch = world.serve(64)
        said = world.workers(64, 50_000, rto=0.02)
        counted = world.counters(switch)
    assert all(worker["exact"] for worker in said)
    assert sum(worker["repeated"] for worker in said) > 20
    assert counted["packets_in"] < 2 * 782 + sum(worker["repeated"] for worker in said)  # some never came
    assert counted["answered"] > 0  # some results never arrived


@pytest.mark.slow
def test_shaping_applies_to_results_and_the_time_is_that_of_the_wire():
    """Bytes on the wire over the rate is a lower bound; on a quiet machine 2 % above it are measured."""
    size, rate = 131_072, 50_000_000
    wire = size // 256 * (14 + 20 + 8 + 10 + 1024) * 8 / rate
    with SwitchWorld(4, rate=rate) as world:
        switch = world.serve(256)
        said = world.workers(256, size, tensors=2, rto=0.2)
        world.counters(switch)
        sent = records_of(["tc", "-netns", world.switch, "-json", "-statistics", "qdisc", "show", "dev", "p0"])
    results = next(row for row in sent if row["kind"] == "tbf")
    assert results["bytes"] >= 2 * size // 256 * 1076
    assert all(worker["exact"] for worker in said)
    best = min(worker["seconds"][-1] for worker in said)
    assert best > 0.9 * wire  # the bucket is 6 % of it


def test_a_killed_switch_leaves_filters_which_the_next_one_takes_away(world):
    switch = world.serve(64)
    mine = next(a for a in attachments() if a.process == switch.pid)
    switch.send_signal(signal.SIGKILL)
    switch.wait()
    shown = ["tc", "-netns", world.switch, "filter", "show", "dev", "p0", "ingress"]
    assert "aggregate" in output_of(shown)
    world.stop(switch)
    with alone():
        _detach_dead()  # or another process that tests at the same time was first
    assert mine not in attachments()
    assert "aggregate" not in output_of(shown)
    assert mine.program not in {row["id"] for row in records_of(["bpftool", "--json", "prog", "show"])}


def test_worlds_of_dead_processes_are_removed():
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    name = f"{switch_world.PREFIX}{process.pid}w0h7"
    output_of(["ip", "netns", "add", name])
    assert name in switch_world.remove_dead_worlds()
    assert name not in output_of(["ip", "netns", "list"])


@pytest.mark.slow
def test_real_workers_join_at_the_door_and_leave_no_slot_behind(world):
    """The project's own worker, which knows nothing of the kernel."""
    switch = world.serve(64)
    program = (
        "import sys, numpy as np\n"
        "from switch_model.live.worker import SwitchGroup\n"
        "rank = int(sys.argv[1])\n"
        f"with SwitchGroup('real', rank, 4, host='{SWITCH_ADDRESS}', slots=16) as group:\n"
        "    for size in (1000, 12345):\n"
        "        mine = np.arange(size, dtype=np.int32) * (rank + 1)\n"
        "        assert np.array_equal(group.all_reduce(mine), np.arange(size) * 10)\n"
        "    floats = np.linspace(-1, 1, 5000, dtype=np.float32)\n"
        "    assert abs(group.all_reduce(floats) - 4 * floats).max() < 1e-6\n"
        "    group.barrier()\n"
        "print('fine')\n"
    )
    workers = [world.start(host, [sys.executable, "-c", program, str(i)]) for i, host in enumerate(world.hosts)]
    assert [line_of(worker) for worker in workers] == ["fine\n"] * 4
    for worker in workers:
        world.stop(worker)
    counted = world.counters(switch)
    assert counted["complete"] == 16 + 193 + 79 + 16
    assert counted["packets_in"] == counted["first"] + counted["add"] + counted["duplicate"]


def test_the_switch_answers_while_packets_come(world):
    switch = world.serve(64)
    ask = (
        "from switch_model.live.session import ask_status; import json\n"
        f"print(json.dumps(ask_status('{SWITCH_ADDRESS}', 48864)))"
    )
    process = world.start(world.hosts[0], [sys.executable, "-c", ask])
    status = json.loads(line_of(process))
    world.stop(process)
    world.counters(switch)
    assert status["datagrams"] == "bpf"
    assert status["static_jobs"][0]["slots"] == 32
    assert status["counters"]["packets_in"] == 0


@pytest.mark.slow
def test_real_workers_send_singly_where_a_cable_would_join_datagrams():
    """The program cannot take them apart; the switch's first message says what it is."""
    program = (
        "import sys, numpy as np\n"
        "from switch_model.live.worker import SwitchGroup\n"
        "rank = int(sys.argv[1])\n"
        f"with SwitchGroup('real', rank, 2, host='{SWITCH_ADDRESS}', stall_timeout=5) as group:\n"
        "    assert np.array_equal(group.all_reduce(np.full(50_000, rank + 1, np.int32)), np.full(50_000, 3))\n"
        "print('fine')\n"
    )
    with SwitchWorld(2, joined=True) as world:
        switch = world.serve(64, n_slots=1)
        workers = [world.start(host, [sys.executable, "-c", program, str(i)]) for i, host in enumerate(world.hosts)]
        assert [line_of(worker) for worker in workers] == ["fine\n"] * 2
        counted = world.counters(switch)
    assert counted["complete"] == 782
    assert counted["dropped_wrong_length"] == 0
