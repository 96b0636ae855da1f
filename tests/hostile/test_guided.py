"""Readers that strangers reach first, attacked with what Hypothesis steers towards code that was not seen yet."""

import json
import pickle
import sys
from pathlib import Path

import pytest
from fuzzing import ATTACKS, SEED, TIMES, Hung, in_time
from hypothesis import HealthCheck, Phase, given, seed, settings, target
from hypothesis import strategies as st
from place_service import pod, row
from pydantic import ValidationError

from collectives.dense.ring import ring_all_reduce
from commsim.core.errors import CommsimError, InputError
from commsim.core.files.network_file import read_network, write_network
from commsim.core.files.schedule_file import read_schedule, write_schedule
from commsim.placement.service.application import said_of
from commsim.placement.service.extender import names_of
from commsim.placement.service.models import ExtenderArgs
from commsim.placement.service.models import Jobs as SentJobs
from commsim.placement.service.pod_jobs import job_of_pod, strict_json
from commsim.placement.service.state import read_known_jobs
from commsim.profiles.profiles import read_calls
from switch_model.live.control_messages import MAX_FROM_WORKER, LineReader, read_line, write_line
from switch_model.live.jobs import LiveJobs
from topologies.star import star

INPUTS = Path(__file__).parents[1] / "answers" / "inputs"
OURS = tuple(str(Path(__file__).parents[2] / package) for package in ("commsim", "switch_model"))
# Pieces of the formats that are read, beside random bytes.
PIECES = tuple(b'{ } [ ] " , : \n null -1 1e400 99999999999999999999 true 0 "job" = . ( R c q'.split(b" "))
PIECES += (b"\x00", b"\xff", b"\x80\x04", b"PK\x03\x04", b"]\n[")
# Where, how many bytes go, and what comes instead.
EDIT = st.tuples(st.integers(0, 4095), st.integers(0, 9), st.sampled_from(PIECES) | st.binary(max_size=8))


def network(path):
    read_network(path)


def schedule(path):
    read_schedule(path)


def profile(path):
    read_calls(path)


def bodies(path):
    try:
        tree = strict_json(path.read_bytes())
    except (ValueError, RecursionError) as error:  # as FastAPI answers it
        raise InputError(str(error)) from None
    try:
        sent = (SentJobs if isinstance(tree, dict) and "jobs" in tree else ExtenderArgs).model_validate(tree)
    except ValidationError as error:
        said_of(error.errors())
        raise InputError("refused") from None
    if isinstance(sent, SentJobs):
        read_known_jobs([job.row() for job in sent.jobs], "request")
    else:
        names_of(sent)
        job_of_pod(sent.Pod, NoJobs())


class NoJobs:
    """The state of a cluster on which nothing runs."""

    def __init__(self):
        self.jobs = {}


class Plane:
    """A switch with 64 slots that does nothing."""

    pool_size = 64
    job_numbers = ()

    def open(self, *_args, **_more):
        pass

    def close(self, *_):
        pass

    def busy(self, *_):
        return []


def lines(path):
    jobs = LiveJobs(Plane(), lambda *_: None)
    for number, message in enumerate(map(read_line, LineReader(MAX_FROM_WORKER).lines(path.read_bytes()))):
        jobs.handle(number % 2, "127.0.0.1", message)


def joining():
    join = {"do": "join", "job": "a", "n_workers": 2, "udp_port": 9000, "slots": 8}
    said = [join | {"rank": 0}, join | {"rank": 1, "udp_port": 9001}, {"do": "barrier"}, {"do": "barrier"}]
    tensor = {"do": "tensor", "elements": 64, "type": "int32"}
    return b"".join(map(write_line, [*said, tensor, tensor, {"do": "alive"}, {"do": "leave"}, {"do": "leave"}]))


def written(write, value, path):
    write(value, path)
    return path.read_bytes()


RIGHT = {
    "network.toml": (network, lambda path: written(write_network, star(4, 1e9), path)),
    "schedule.npz": (schedule, lambda path: written(write_schedule, ring_all_reduce(3), path)),
    "record.pickle": (profile, lambda _: pickle.dumps(json.loads((INPUTS / "flight_rank1.json").read_text()))),
    "trace.json": (profile, lambda _: (INPUTS / "kineto.json").read_bytes()),
    "jobs.body": (bodies, lambda _: json.dumps({"jobs": [row(gpus=2, placement=["h0", "h1"])]}).encode()),
    "pod.body": (bodies, lambda _: json.dumps({"Pod": pod(row()), "NodeNames": ["h0"]}).encode()),
    "worker.lines": (lines, lambda _: joining()),
}


def covered(read, path):
    """Return how many lines of ours run; only what users are told may be raised."""
    seen = set()

    def trace(frame, *_):
        code = frame.f_code
        if not code.co_filename.startswith(OURS):
            return None

        def line(frame, *_):
            seen.add((code, frame.f_lineno))
            return line

        return line

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with in_time(path):
            read(path)
    except CommsimError as error:
        if len(str(error).splitlines()) != 1:
            raise AssertionError("an error is one line") from error
    except Hung:
        raise AssertionError("it does not end") from None
    finally:
        sys.settrace(before)
    return len(seen)


@pytest.mark.parametrize("name", RIGHT)
def test_what_steered_damage_makes_is_refused_or_read(name, tmp_path):
    read, make = RIGHT[name]
    path = tmp_path / name
    right = make(path)
    path.write_bytes(right)
    read(path)

    @seed(SEED)
    @settings(max_examples=25 * TIMES, database=None, phases=(Phase.generate, Phase.target),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.lists(EDIT, min_size=1, max_size=12))
    def attack(edits):
        data = right
        for where, gone, new in edits:
            at = where * len(data) // 4096
            data = data[:at] + new + data[at + gone :]
        path.write_bytes(data)
        ATTACKS["steered inputs"] += 1
        target(float(covered(read, path)))

    attack()
