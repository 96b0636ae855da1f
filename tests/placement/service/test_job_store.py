"""Jobs survive the death of the service, all or none of a request, and a damaged store is refused by name."""

import contextlib
import http.client
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys

import pytest
from place_service import row, running

from commsim.core.errors import InputError
from commsim.placement.service.job_store import JobStore

OLD, NEW = row("old", 2, placement=["h0", "h1"]), row("new", 1, placement=["h2"])


def test_jobs_are_known_after_the_service_has_ended(tmp_path):
    with running(store=JobStore(tmp_path / "jobs")) as service:
        assert service.ask("POST", "/jobs", {"jobs": [OLD, NEW]})[0] == 200
        assert service.ask("DELETE", "/jobs/new")[0] == 200
        assert service.ask("POST", "/jobs", {"jobs": [NEW, row("bad", 1, placement=["nowhere"])]})[0] == 400
    with running(store=JobStore(tmp_path / "jobs")) as service:
        (job,) = service.ask("GET", "/jobs")[1]["jobs"]
        assert (job["job"], job["gpus"], job["placed"]) == ("old", 2, ["h0", "h1"])


def test_what_cannot_be_written_is_not_reserved(tmp_path):
    store = JobStore(tmp_path / "jobs")
    with running(store=store) as service:
        assert service.ask("POST", "/jobs", {"jobs": [OLD]})[0] == 200
        store._db.execute("PRAGMA query_only = ON")  # as on a full disk
        for method, path, tree in (("POST", "/jobs", {"jobs": [NEW]}), ("DELETE", "/jobs/old", None)):
            status, answer = service.ask(method, path, tree)
            assert status == 503
            assert "could not be written, and was not made" in answer["error"]
        assert [job["job"] for job in service.ask("GET", "/jobs")[1]["jobs"]] == ["old"]


def test_a_store_that_is_none_is_damaged_or_is_in_use_is_refused(tmp_path):
    for name, content in (("text", b"no store " * 500), ("png", b"\x89PNG")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"{name}: not a readable store of jobs"):
            JobStore(tmp_path / name)
    with contextlib.closing(sqlite3.connect(tmp_path / "other")) as db:
        db.execute("CREATE TABLE t (x)")
    with pytest.raises(InputError, match="other: not a store of jobs"):
        JobStore(tmp_path / "other")
    JobStore(tmp_path / "cut").close()
    os.truncate(tmp_path / "cut", 0)
    with pytest.raises(InputError, match="cut: is empty, which no store of jobs is"):
        JobStore(tmp_path / "cut")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: not a regular file"):
        JobStore(tmp_path / "pipe")
    store = JobStore(tmp_path / "jobs")
    store.put([OLD], 1)
    with pytest.raises(InputError, match="jobs: another service has it"):
        JobStore(tmp_path / "jobs")
    store.close()
    data = (tmp_path / "jobs").read_bytes()
    at = data.rindex(b"iter_time_ms") + 16
    (tmp_path / "jobs").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    store = JobStore(tmp_path / "jobs")
    with pytest.raises(InputError, match="job 'old' is damaged"):
        store.jobs()
    store.close()


@pytest.mark.slow
def test_reservations_survive_kill_9(tmp_path):
    (tmp_path / "cluster.toml").write_text('[topology]\nspec = "star:n_hosts=4"\n[hosts]\ngpus = 2\n')
    command = [sys.executable, "-m", "commsim", "place", "serve", "--cluster", str(tmp_path / "cluster.toml"),
               "--store", str(tmp_path / "jobs")]  # fmt: skip
    for known in (0, 1, 2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            port = int(re.search(r":(\d+):", process.stdout.readline())[1])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/jobs")
            assert len(json.loads(connection.getresponse().read())["jobs"]) == known
            body = json.dumps({"jobs": [row(f"job {known}", 1, placement=[f"h{known}"])]})
            connection.request("POST", "/jobs", body, {"Content-Type": "application/json"})
            assert connection.getresponse().status == 200
            process.send_signal(signal.SIGKILL)
            connection.close()
