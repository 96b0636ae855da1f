"""The service as a user starts and stops it."""

import asyncio
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_S = 60
CLUSTER = '[topology]\nspec = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2"\n[hosts]\ngpus = 2\n'
JOBS = [{"job": "a", "gpus": 2, "iter_time_ms": 100, "phases": [], "placement": ["h0", "h1"]}]


@pytest.fixture
def cluster(tmp_path):
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    (tmp_path / "jobs.json").write_text(json.dumps(JOBS))
    return tmp_path / "cluster.toml"


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_until_it_is_told_to_stop(tmp_path, cluster, number):
    flags = ["--cluster", cluster, "--jobs", tmp_path / "jobs.json"]
    command = [sys.executable, "-m", "commsim", "place", "serve", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            match = re.match(r"# serving on http://127\.0\.0\.1:(\d+): .*, 4 hosts, 8 GPUs", line)
            assert match, line + process.stderr.read()
            connection = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=LIMIT_S)
            connection.request("GET", "/jobs")
            answer = json.loads(connection.getresponse().read())
            (job,) = answer["jobs"]
            assert (job["job"], job["gpus"], job["placed"]) == ("a", 2, ["h0", "h1"])
            process.send_signal(number)  # while the connection is open
            out, err = process.communicate(timeout=LIMIT_S)
            connection.close()
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_how_to_work_one_after_the_other(tmp_path):
    root = Path(__file__).parents[3]
    (block,) = re.findall(
        r"(?<=\n\n)(?:    .*\n)*    commsim place serve.*\n(?:    .*\n)+",
        (root / "docs/howto_scheduler.md").read_text(),
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    commands = "".join(line[4:] + "\n" for line in block.splitlines()).replace(":8080", f":{port}")
    commands = commands.replace("--port 8080", f"--port {port}").replace("commsim", f"{sys.executable} -m commsim", 1)
    script = f"trap 'kill $!' EXIT\n{commands}"
    found = subprocess.run(["bash", "-c", script], cwd=root, capture_output=True, text=True, timeout=2 * LIMIT_S)
    cluster, _, rest = found.stdout.partition("\n")[2].partition("}{")
    assert json.loads(cluster + "}")["gpus"] == 64, found
    assert json.loads("{" + rest)["candidates"][0]["slowdown"] == 1.0


def test_jobs_need_a_cluster(tmp_path, cluster, commsim):
    message = commsim.refuses("place", "serve", "--jobs", tmp_path / "jobs.json")
    assert "--jobs needs --cluster" in message


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--host", "0.0.0.0"), "0.0.0.0 can be reached from other machines: give --token-file"),
        (("--host", "nowhere"), "--host is an address"),
        (("--port", "70000"), "--port is a number from 0 to 65535"),
        (("--timeout", "1ms"), "--timeout is from 100ms to 1h"),
        (("--host", "unix:/nonexistent/x"), "cannot listen on /nonexistent/x: No such file"),
        (("--max-body", "8"), "--max-body needs a unit"),
        (("--max-body", "1000B"), "--max-body is at least 1KiB"),
        (("--token-file", "/nonexistent"), "/nonexistent: No such file"),
        (("--min-score", "2"), "--min-score is a score"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_served(commsim, cluster, flags, message):
    assert message in commsim.refuses("place", "serve", "--cluster", cluster, *flags)


def test_jobs_that_do_not_fit_are_refused(commsim, tmp_path, cluster):
    jobs = tmp_path / "jobs.json"
    jobs.write_text(json.dumps([{**JOBS[0], "gpus": 3, "placement": ["h0"] * 3}]))
    message = commsim.refuses("place", "serve", "--cluster", cluster, "--jobs", jobs)
    assert "jobs.json: job a takes 3 GPUs of h0, which has 2" in message


def test_jobs_that_ended_do_not_come_back_when_the_service_starts_again(commsim, tmp_path, cluster, monkeypatch):
    """The same command after ``kill -9`` added the jobs of its file again, and the version grew."""
    flags = ("--cluster", cluster, "--jobs", tmp_path / "jobs.json", "--store", tmp_path / "jobs.sqlite")
    seen = []

    def serve(service, listening, started):
        started("http://here")
        seen.append((service.state.version, list(service.known)))
        if len(seen) == 1:
            asyncio.run(service.remove_job("a"))
        service.close()

    monkeypatch.setattr("commsim.placement.service.http_server.serve", serve)
    assert "version" not in commsim("place", "serve", *flags).out
    told = commsim("place", "serve", *flags).out
    assert seen == [(1, ["a"]), (2, [])]
    assert "jobs.sqlite, version 2, and" in told
    assert "jobs.json is not read" in told


def test_help_imports_no_web_framework():
    code = (
        "import sys; from commsim.cli import main\ntry: main(['place', 'serve', '--help'])\nexcept SystemExit: pass\n"
    )
    code += "assert not {'fastapi', 'uvicorn', 'yaml', 'scipy', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=LIMIT_S)
