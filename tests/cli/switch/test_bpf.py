import json
import sys

import pytest

from benchmarks import switch_world
from commsim.cli.switch.serve import Dataplane, kernel_switch, static_job
from commsim.core.errors import BackendError, InputError
from switch_model.live.server import SwitchOptions


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
    monkeypatch.setattr("switch_model.bpf.server.lacking", lambda: "there is no clang here (packages clang)")
    assert ask(dataplane="bpf", interfaces="p0") is None
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "there is no clang here (packages clang); the user-space switch serves" in said
    with pytest.raises(BackendError, match="the user-space switch has no --job"):
        ask(dataplane="bpf", interfaces="p0", job=("t:workers=10.0.0.1",))


@pytest.mark.needs_kernel("bpf")
def test_interfaces_that_do_not_exist_are_an_error_not_a_reason_to_serve_elsewhere():
    with pytest.raises(InputError, match="no interface 'nowhere0'"):
        ask(dataplane="bpf", interfaces="nowhere0")


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
        said = json.loads(status.communicate(timeout=30)[0])
        assert said["counters"]["complete"] == 400
        assert said["interfaces"] == ["p0", "p1"]
        assert [(job["name"], job["first_slot"]) for job in said["static_jobs"]] == [("still", 56)]
        assert said["free_slots"] == [[0, 56]]
        assert world.stop(switch) == 0
