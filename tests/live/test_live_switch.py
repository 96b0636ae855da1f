"""A real switch and real workers, processes on loopback: sums under losses, and what happens when one of them dies."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from live_processes import LIMIT_S, SwitchProcess, WorkerProcess, all_workers, reduce_drawn, reduce_for_ever, right
from ports import free_ports

from commsim.core.errors import BackendError, InputError
from switch_model.live import LiveSwitch, SwitchGroup, SwitchOptions
from switch_model.slot_sequence import packets_needed

SIZES = (1, 64, 65, 128 * 64, 2 * 128 * 64, 20_001)
PLAN = [(dtype, n) for n in SIZES for dtype in ("int32", "float32")]


@pytest.fixture(scope="module", params=[0.0, 0.01, 0.1], ids=["no_loss", "1%_lost", "10%_lost"])
def switch(request: pytest.FixtureRequest) -> Iterator[SwitchProcess]:
    with SwitchProcess("--drop-in", request.param, "--drop-out", request.param, "--seed", 3) as switch:
        yield switch
    assert switch.process.returncode == 0
    told = [line for line in switch.errors.splitlines() if not line.startswith("commsim: compiling kernels, once for ")]
    assert not told


@pytest.fixture
def calm() -> Iterator[SwitchProcess]:
    with SwitchProcess("--worker-timeout", "2s") as switch:
        yield switch


def until(condition: object, what: str) -> None:
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [2, 4, 8])
def test_integers_are_exact_and_floats_within_the_bound_whatever_is_lost(switch: SwitchProcess, n_workers: int) -> None:
    before = switch.counts()
    for errors, sent in all_workers(n_workers, reduce_drawn, switch.port, f"job of {n_workers}", PLAN):
        assert right(PLAN, errors), errors
        assert sent == sum(packets_needed(n, 64, 128, dtype == "float32") for dtype, n in PLAN)
    after = switch.counts()
    counts = {name: after[name] - before[name] for name in after}
    rounds = sum(packets_needed(n, 64, 128, dtype == "float32") for dtype, n in PLAN)
    assert counts["complete"] == counts["first"] == rounds
    assert counts["add"] == rounds * (n_workers - 1)
    assert (counts["dropped_injected_in"] > 0) == (counts["dropped_injected_out"] > 0)
    lost = sum(n for name, n in counts.items() if name.startswith("dropped_") and name[8:] not in OUTGOING)
    assert counts["packets_in"] == counts["first"] + counts["add"] + counts["duplicate"] + lost
    left = counts["packets_out"] + sum(counts[f"dropped_{name}"] for name in OUTGOING)
    assert left == counts["complete"] * n_workers + counts["answered"]
    assert switch.status()["jobs"] == []


OUTGOING = ("injected_out", "not_sent")


@pytest.mark.slow
def test_two_jobs_run_at_once_on_slots_of_their_own(switch: SwitchProcess) -> None:
    plan = [("int32", 50_000), ("float32", 30_000), ("int32", 7)]
    jobs = [[WorkerProcess(reduce_drawn, rank, 2, switch.port, job, plan) for rank in range(2)] for job in "xy"]
    for workers in jobs:
        for worker in workers:
            errors, _ = worker.result()
            assert right(plan, errors), errors


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["messages", "single"])
def test_packets_of_256_elements_and_the_slower_ways_to_send_them_give_the_same_sums(mode: str) -> None:
    plan = [("int32", 40_000), ("float32", 40_000)]
    with SwitchProcess("--elements-per-packet", 256, "--drop-in", 0.01, "--datagrams", mode) as switch:
        for errors, _ in all_workers(2, reduce_drawn, switch.port, "k", plan):
            assert right(plan, errors), errors
        assert switch.status()["datagrams"] == mode


@pytest.mark.slow
def test_a_killed_worker_ends_its_job_with_a_clear_error_and_the_job_can_be_started_again(
    calm: SwitchProcess, tmp_path: Path
) -> None:
    started = str(tmp_path / "rank")
    workers = [WorkerProcess(reduce_for_ever, rank, 3, calm.port, "doomed", started) for rank in range(3)]
    bystanders = [WorkerProcess(reduce_for_ever, rank, 2, calm.port, "other", str(tmp_path / "o")) for rank in range(2)]
    until(lambda: all(Path(f"{started}{rank}").exists() for rank in range(3)), "the workers did not begin")
    os.kill(workers[1].pid, signal.SIGKILL)
    said = [worker.result() for worker in workers]
    assert said[1] == "killed"
    assert said[0] == said[2] == "BackendError: rank 1 of job 'doomed' has gone: its connection ended"
    for errors, _ in all_workers(3, reduce_drawn, calm.port, "doomed", PLAN[:4]):
        assert right(PLAN[:4], errors)
    assert [job["name"] for job in calm.status()["jobs"]] == ["other"]  # it has not noticed anything
    os.kill(bystanders[0].pid, signal.SIGKILL)
    assert "rank 0 of job 'other' has gone" in bystanders[1].result()
    assert bystanders[0].result() == "killed"


@pytest.mark.slow
def test_a_worker_that_stands_still_counts_as_dead_after_the_timeout(calm: SwitchProcess, tmp_path: Path) -> None:
    started = str(tmp_path / "rank")
    workers = [WorkerProcess(reduce_for_ever, rank, 2, calm.port, "j", started) for rank in range(2)]
    until(lambda: all(Path(f"{started}{rank}").exists() for rank in range(2)), "the workers did not begin")
    os.kill(workers[0].pid, signal.SIGSTOP)
    assert workers[1].result() == "BackendError: rank 0 of job 'j' has been silent for 2 s"
    os.kill(workers[0].pid, signal.SIGKILL)
    assert workers[0].result() == "killed"
    assert calm.status()["free_slots"] == [[0, 512]]


@pytest.mark.slow
def test_a_worker_that_only_computes_is_waited_for(calm: SwitchProcess) -> None:
    """Longer than the timeout: another thread says that it lives."""
    slow = WorkerProcess(late, 0, 2, calm.port, 3.0)
    quick = WorkerProcess(late, 1, 2, calm.port, 0.0)
    assert slow.result() == quick.result() == 2


def late(rank: int, n_workers: int, port: int, seconds: float) -> int:
    with SwitchGroup("patient", rank, n_workers, port=port) as group:
        time.sleep(seconds)
        return int(group.all_reduce(np.ones(1000, np.int32))[0])


@pytest.mark.slow
def test_workers_notice_that_the_switch_has_gone_and_go_on_with_a_new_one(tmp_path: Path) -> None:
    started = str(tmp_path / "rank")
    with SwitchProcess() as switch:
        workers = [WorkerProcess(reduce_for_ever, rank, 2, switch.port, "j", started) for rank in range(2)]
        until(lambda: all(Path(f"{started}{rank}").exists() for rank in range(2)), "the workers did not begin")
        switch.kill()
        for worker in workers:
            gone = f"the switch at 127.0.0.1, port {switch.port} has gone: its connection ended"
            assert worker.result() == f"BackendError: {gone}"
    with SwitchProcess(port=switch.port) as again:
        for errors, _ in all_workers(2, reduce_drawn, again.port, "j", PLAN[:4]):
            assert right(PLAN[:4], errors)


@pytest.mark.slow
def test_a_worker_whose_floats_cannot_be_sent_tells_the_others_why(calm: SwitchProcess) -> None:
    said = all_workers(2, reduce_nan, calm.port)
    assert said[0] == "InputError: element 3 is nan; NaN and infinity cannot be quantised"
    assert said[1] == f"BackendError: rank 0 of job 'nan' failed: {said[0]}"


def reduce_nan(rank: int, n_workers: int, port: int) -> None:
    with SwitchGroup("nan", rank, n_workers, port=port) as group:
        group.all_reduce(np.array([0, 1, 2, np.nan if rank == 0 else 3], np.float32))


@pytest.mark.slow
def test_tensors_that_do_not_match_are_an_error_and_no_sum(calm: SwitchProcess) -> None:
    said = all_workers(2, reduce_own_size, calm.port)
    assert all(f"float32[{n}] on rank {rank}" in one for one in said for rank, n in enumerate((500, 600)))


def reduce_own_size(rank: int, n_workers: int, port: int) -> None:
    with SwitchGroup("m", rank, n_workers, port=port) as group:
        group.all_reduce(np.zeros(500 + 100 * rank, np.float32))


@pytest.mark.slow
def test_waiting_for_workers_that_do_not_come_ends_with_their_ranks(calm: SwitchProcess) -> None:
    with pytest.raises(BackendError, match=r"did not answer for 0\.5 s; ranks \[0, 2\] have not joined"):
        SwitchGroup("lonely", 1, 3, port=calm.port, join_timeout=0.5)
    until(lambda: calm.status()["jobs"] == [], "the switch still waits for the job's other ranks")


def test_nobody_there_is_an_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(BackendError, match="no switch answers at 127"):
            SwitchGroup("j", 0, 1, port=unused.getsockname()[1], join_timeout=0.1)


def test_a_worker_waits_for_a_switch_that_is_not_up_yet() -> None:
    (port,) = free_ports(1)
    with ThreadPoolExecutor() as pool:
        early = pool.submit(lambda: SwitchGroup("j", 0, 1, port=port).close())
        time.sleep(0.3)  # the first attempts are refused
        with SwitchProcess(port=port):
            early.result(timeout=LIMIT_S)


def test_a_port_that_is_taken_is_an_error() -> None:
    with LiveSwitch(SwitchOptions(port=0)) as one:
        with pytest.raises(BackendError, match="cannot listen on 127"):
            LiveSwitch(SwitchOptions(port=one.address[1]))
        with pytest.raises(InputError, match="a rank is 0 to 1 of 2 workers, got 2"):
            SwitchGroup("j", 2, 2, port=one.address[1])
