"""The commands of the live switch, as a user types them, in processes of their own."""

import inspect
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from live_processes import LIMIT_S, SwitchProcess

from benchmarks.switch import switch_world
from commsim.core.errors import BackendError, InputError
from commsim.core.units import parse_time
from commsim.live.cli.all_reduce import SwitchAllReduceConfig
from commsim.live.cli.secret import read_secrets
from commsim.live.cli.serve import Dataplane, kernel_switch, static_job
from switch_model.live.server import SwitchOptions
from switch_model.live.worker import SwitchGroup


def started(*argv: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "commsim", "switch", *map(str, argv)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, out, err


@pytest.fixture(scope="module")
def switch():
    with SwitchProcess("--drop-in", 0.02) as switch:
        yield switch


def workers(switch, n, *flags, job="job", each=None):
    flags = ("--workers", n, "--port", switch.port, "--job", job, *flags)
    run = [started("all-reduce", "--rank", rank, *flags, *(each(rank) if each else ())) for rank in range(n)]
    return [ended(one) for one in run]


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_workers_print_and_write_what_they_did(switch, tmp_path, dtype):
    flags = ("--size", "256KiB", "--dtype", dtype, "--iterations", 2, "--check")
    done = workers(switch, 2, *flags, each=lambda rank: ("--json", tmp_path / f"{rank}.json"))
    for rank, (code, out, err) in enumerate(done):
        assert code == 0, err
        assert out.splitlines()[0] == f"# rank {rank} of 2, 65536 {dtype}, 128 slots of 64 elements"
        assert [line.split()[-1] for line in out.splitlines()[2:]] == ["right", "right"]
        tree = json.loads((tmp_path / f"{rank}.json").read_text())
        assert tree["config"]["workers"] == 2
        for row in tree["results"]:
            assert row["right"] is True
            assert row["elements_per_s"] == pytest.approx(65536 / row["time_s"])
            assert row["packets_sent"] - row["retransmissions"] == 1024 + 128 * (dtype == "float32")


@pytest.mark.slow
def test_tensors_come_from_files_and_sums_go_to_files(switch, tmp_path):
    tensors = [np.random.default_rng(rank).standard_normal((30, 50)).astype(np.float32) for rank in range(3)]
    for rank, tensor in enumerate(tensors):
        np.save(tmp_path / f"in{rank}.npy", tensor)
    each = lambda rank: ("--input", tmp_path / f"in{rank}.npy", "--output", tmp_path / f"out{rank}.npy")  # noqa: E731
    assert [code for code, _, _ in workers(switch, 3, job="files", each=each)] == [0, 0, 0]
    sums = [np.load(tmp_path / f"out{rank}.npy") for rank in range(3)]
    np.testing.assert_allclose(sums[0], sum(np.float64(t) for t in tensors).reshape(-1), atol=1e-6)
    assert all((one == sums[0]).all() for one in sums)


@pytest.mark.slow
def test_status_shows_jobs_slots_and_counters(commsim, switch):
    waiting = started("all-reduce", "--rank", 1, "--workers", 3, "--port", switch.port, "--job", "half", "--slots", 64)
    try:
        while "half" not in {job["name"] for job in switch.status()["jobs"]}:
            assert waiting.poll() is None
        said = commsim("switch", "status", "--port", switch.port)
        assert said.code == 0
        row = next(line for line in said.out.splitlines() if line.split()[0] == "half")
        assert row.split() == ["half", "3", "0-63", "0", "0", "rank", "0,", "rank", "2"]
        assert "free: 64-511" in said.out
        tree = json.loads(commsim("switch", "status", "--port", switch.port, "--json").out)
        assert tree["jobs"][0]["waiting_for"] == [0, 2]
        assert set(tree["counters"]) >= {"packets_in", "packets_out", "first", "add", "duplicate", "complete"}
    finally:
        waiting.send_signal(signal.SIGINT)
        assert ended(waiting)[0] == 130


@pytest.mark.slow
def test_serving_ends_with_the_counters_when_told_to_stop(tmp_path):
    report = tmp_path / "status.json"
    with SwitchProcess("--json", report) as switch:
        assert all(code == 0 for code, _, _ in workers(switch, 2, "--size", "64KiB"))
    assert switch.process.returncode == 0
    (status,) = json.loads(report.read_text())["results"]
    assert status["counters"]["complete"] == 256
    assert ["complete", "256"] in [line.split() for line in switch.output.splitlines()]


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (("serve", "--port", "70000"), "--port is a number from 0 to 65535, got 70000"),
        (("serve", "--pool-size", "0", "--port", "0"), "a pool has 1 to 16384 slots, got 0"),
        (("serve", "--elements-per-packet", "100", "--port", "0"), "64 or 256 elements, got 100"),
        (("serve", "--drop-in", "1", "--port", "0"), "less than 1, got 1.0"),
        (("serve", "--worker-timeout", "5", "--port", "0"), "--worker-timeout needs a unit"),
        (("serve", "--worker-timeout", "1ms", "--port", "0"), "at least 100ms"),
        (("serve", "--datagrams", "pigeons", "--port", "0"), "got 'pigeons'"),
        (("serve", "--host", "nowhere", "--port", "0"), "--host is an IPv4 address"),
        (("serve", "--seed", "-1", "--port", "0"), "--seed must be 0 or more"),
        (("status", "--port", "1"), "no switch answers at 127.0.0.1, port 1"),
        (
            ("all-reduce", "--rank", "0", "--workers", "1", "--port", "1", "--join-timeout", "100ms"),
            "no switch answers",
        ),
        (("all-reduce", "--rank", "2", "--workers", "2", "--port", "1"), "--rank is 0 to --workers less 1, got 2 of 2"),
        (("all-reduce", "--rank", "0", "--workers", "1", "--size", "3B"), "--size must be a multiple of 4B"),
        (("all-reduce", "--rank", "0", "--workers", "1", "--size", "0B"), "--size must be a whole number of bytes"),
        (("all-reduce", "--rank", "0", "--workers", "1", "--iterations", "0"), "--iterations must be at least 1"),
        (("all-reduce", "--rank", "0", "--workers", "1", "--input", "no.npy"), "no.npy: No such file"),
        (
            ("all-reduce", "--rank", "0", "--workers", "1", "--input", "no.npy", "--check"),
            "--check needs drawn tensors",
        ),
        (("all-reduce", "--rank", "0", "--workers", "1", "--rto", "0s"), "an rto is more than 0"),
        (("all-reduce", "--rank", "-1", "--workers", "2"), "--rank is 0 to --workers less 1, got -1 of 2"),
        (("all-reduce", "--rank", "0", "--workers", "2", "--size", "9000TiB"), "needs more memory than there is"),
        (("all-reduce", "--rank", "0", "--workers", "2", "--output", "no/such/x.npy"), "no such folder"),
        (("serve", "--port", "0", "--json", "no/such/x.json"), "no such folder"),
        (("serve", "--drop-in", "5%%", "--port", "0"), "invalid share value"),
    ],
)
def test_wrong_flags_are_one_clear_line(commsim, argv, complaint):
    assert complaint in commsim.refuses("switch", *argv)


def test_what_the_switch_refuses_is_one_clear_line(commsim, switch):
    said = commsim.refuses("switch", "all-reduce", "--rank", 0, "--workers", 2, "--slots", 600, "--port", switch.port)
    assert "job 'job': 600 slots do not fit in what is free of 512: at most 512 fit" in said


def test_listening_to_other_machines_needs_a_secret_or_the_word_for_it(commsim):
    for argv in (("--host", "0.0.0.0"), ("--host", "0.0.0.0", "--dataplane", "bpf", "--interfaces", "p0")):
        said = commsim.refuses("switch", "serve", "--port", 0, *argv)
        assert "0.0.0.0 can be reached from other machines: give --secret-file" in said
    process = started("serve", "--host", "0.0.0.0", "--port", 0, "--no-secret")
    assert process.stdout.readline().startswith("# serving on 0.0.0.0, port ")
    process.terminate()
    assert ended(process)[0] == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("short\n", "at least 16 characters"),
        ("\n\n", "at least 16 characters"),
        ("a b c\n", "line 1: expected SECRET, once, or NAME SECRET"),
        ("0123456789abcdef\nfedcba9876543210\n", "line 2: expected SECRET, once, or NAME SECRET"),
        ("a 0123456789abcdef\na fedcba9876543210\n", "line 2: expected SECRET, once, or NAME SECRET"),
        ("0123456789abcdef\0\n", "line 1: expected SECRET"),
        ("päßwort-päßwort-päßwort\n", "printable ASCII"),
    ],
)
def test_a_file_that_has_no_secrets_is_refused_without_showing_what_it_has(commsim, tmp_path, text, complaint):
    file = tmp_path / "secret"
    file.write_text(text)
    said = commsim.refuses("switch", "serve", "--port", 0, "--secret-file", file)
    assert complaint in said
    assert not any(word in said for word in text.split() if len(word) > 5)


def test_secrets_and_what_contradicts_them(commsim, tmp_path):
    file = tmp_path / "secret"
    file.write_text("0123456789abcdef\nmine fedcba9876543210\n")
    assert read_secrets(str(file)).of("mine") == "fedcba9876543210"
    assert read_secrets(str(file)).of("other") == "0123456789abcdef"
    given = ("switch", "serve", "--port", 0, "--secret-file", file)
    assert "exclude each other" in commsim.refuses(*given, "--no-secret")
    assert "cannot check tags" in commsim.refuses(*given, "--dataplane", "bpf", "--interfaces", "p0")


@pytest.mark.slow
def test_commands_with_a_secret_reduce_and_one_without_is_told_what_to_give(commsim, tmp_path):
    file = tmp_path / "secret"
    file.write_text("0123456789abcdef\n")
    with SwitchProcess("--secret-file", file, "--drop-in", 0.02) as switch:
        for code, out, err in workers(switch, 2, "--size", "256KiB", "--check", "--secret-file", file):
            assert (code, out.split()[-1]) == (0, "right"), err
        commsim("switch", "status", "--port", switch.port)
        assert "only workers with its secret: --secret-file FILE" in commsim.err
        commsim("switch", "status", "--port", switch.port, "--secret-file", file)
        assert "dropped injected in" in commsim.out


def test_a_file_that_is_no_tensor_is_refused_and_no_pickle_is_loaded(commsim, tmp_path):
    for name, array in (("p", np.array([{}], object)), ("d", np.zeros(3)), ("e", np.zeros(0, np.int32))):
        path = Path(tmp_path / f"{name}.npy")
        np.save(path, array, allow_pickle=True)
        assert path.name in commsim.refuses("switch", "all-reduce", "--rank", 0, "--workers", 1, "--input", path)
    os.mkfifo(tmp_path / "pipe")
    said = commsim.refuses("switch", "all-reduce", "--rank", 0, "--workers", 1, "--input", tmp_path / "pipe")
    assert "pipe: not a regular file" in said


def ask(**flags):
    return kernel_switch(Dataplane(**flags), SwitchOptions(), None)


def test_a_job_is_read_with_its_workers_ports_and_slots():
    job = static_job("train:slots=16,workers=10.0.0.1:4001@p0+10.0.0.2@eth0.7+10.0.0.3")
    assert (job.name, job.n_slots) == ("train", 16)
    assert job.peers == (("10.0.0.1", 4001), ("10.0.0.2", 4000), ("10.0.0.3", 4000))
    assert job.interfaces == ("p0", "eth0.7", "")


@pytest.mark.parametrize(
    "text",
    ["", "train", ":workers=10.0.0.1", "t:workers=", "t:workers=host", "t:workers=10.0.0.1:0",
     "t:workers=10.0.0.1:70000", "t:slots=0,workers=10.0.0.1", "t:slots=x,workers=10.0.0.1", "t:workers=10.0.0.1+",
     "t:colour=red,workers=10.0.0.1"],
)  # fmt: skip
def test_a_job_that_is_written_wrongly_is_refused(text):
    with pytest.raises(InputError, match="--job is NAME:slots="):
        static_job(text)


def test_the_user_space_switch_has_no_ports_of_its_own():
    assert ask() is None
    assert ask(dataplane="user") is None
    with pytest.raises(InputError, match="belong to --dataplane bpf"):
        ask(interfaces="p0")
    with pytest.raises(InputError, match="belong to --dataplane bpf"):
        ask(job=("t:workers=10.0.0.1",))


def test_the_switch_in_the_kernel_needs_ports():
    with pytest.raises(InputError, match="needs its ports: --interfaces"):
        ask(dataplane="bpf")


def test_where_it_cannot_be_one_line_says_so_and_user_space_serves(monkeypatch, capsys):
    monkeypatch.setattr("switch_model.bpf.server.lacking", lambda: "no clang here (packages clang)")
    assert ask(dataplane="bpf", interfaces="p0") is None
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "no clang here (packages clang); the user-space switch serves" in said
    with pytest.raises(BackendError, match="the user-space switch has no --job"):
        ask(dataplane="bpf", interfaces="p0", job=("t:workers=10.0.0.1",))


@pytest.mark.needs_kernel("bpf")
def test_interfaces_that_do_not_exist_are_an_error_not_a_reason_to_serve_elsewhere():
    with pytest.raises(InputError, match="no interface 'nowhere0'"):
        ask(dataplane="bpf", interfaces="nowhere0")


@pytest.mark.slow
@pytest.mark.needs_kernel("bpf", "namespaces")
@pytest.mark.skipif(bool(switch_world.lacking()), reason=switch_world.lacking() or "all there")
def test_the_commands_work_together_from_the_hosts_of_a_network():
    def command(*argv):
        return [sys.executable, "-m", "commsim", "switch", *argv]

    with switch_world.SwitchWorld(2) as world:
        own = ["--interfaces", "p0,p1", "--pool-size", "64", "--job", "still:slots=8,workers=10.77.0.1@p0+10.77.0.2@p1"]
        switch = world.start(world.switch, command("serve", "--dataplane", "bpf", *own))
        assert switch_world.line_of(switch) == "# job still: 2 workers, number 255, slots 56 to 63\n"
        assert "10.77.0.254, port 48864" in switch_world.line_of(switch)
        there = ["--host", switch_world.SWITCH_ADDRESS]
        workers = [
            world.start(
                host, command("all-reduce", "--rank", str(i), "--workers", "2", "--size", "100KiB", "--check", *there)
            )
            for i, host in enumerate(world.hosts)
        ]
        assert [worker.wait(60) for worker in workers] == [0, 0]
        status = world.start(world.hosts[1], command("status", "--json", *there))
        said = json.loads(status.communicate(timeout=100)[0])
        assert said["counters"]["complete"] == 400
        assert said["interfaces"] == ["p0", "p1"]
        assert [(job["name"], job["first_slot"]) for job in said["static_jobs"]] == [("still", 56)]
        assert said["free_slots"] == [[0, 56]]
        assert world.stop(switch) == 0


def test_a_worker_waits_as_long_by_default_on_the_command_line_and_in_python():
    for name in ("rto", "join_timeout", "stall_timeout"):
        flag = getattr(SwitchAllReduceConfig(rank=0, workers=1), name)
        assert parse_time(flag) == inspect.signature(SwitchGroup).parameters[name].default
