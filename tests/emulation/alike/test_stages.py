"""Pipeline stages without data: messages between them in virtual time, and a program against all ranks with data."""

import json
from pathlib import Path

import numpy as np
import pytest

from commsim import predict
from commsim.cli import main
from commsim.core.placement import Placement
from commsim.emulation.alike.network_times import ExchangeCosts, NetworkTimes
from commsim.emulation.alike.queued_work import Moment, QueuedCollective, QueuedMessage
from commsim.emulation.alike.stage_timeline import StageTimeline
from commsim.emulation.failures import ProgramError
from commsim.prediction.inputs import load_network
from commsim.prediction.read import DEFAULT_OVERHEAD

PROGRAM = Path(__file__).parents[3] / "examples" / "train_pipeline.py"
STAR = "star:n_hosts=8,bandwidth=25Gbps"


class Alone:
    """Every exchange at the pace that it has alone."""

    def paces(self, active):
        return [1 / one.time for one in active]


def message(ends, *, time=2.0, delay=0.5, eager=False):
    costs = ExchangeCosts(time, np.zeros(1), np.ones(1), "message", delay)
    return QueuedMessage(costs, "send", 1.0, 2, "here:1", n_gpus=2, ends=ends, is_eager=eager)


def put(timeline, gpu, *works):
    """Put works on a stream of a GPU of its own; return its end."""
    stream = timeline.stream("", gpu)
    stream.queue.extend(works)
    return timeline.record(stream, Moment())


def idle(timeline):
    return all(map(timeline.is_idle, range(len(timeline.computing))))


@pytest.mark.parametrize(("eager", "received"), [(False, 5.5), (True, 3.0)])
def test_a_message_begins_when_both_are_there_unless_it_is_eager(eager, received):
    timeline = StageTimeline(Alone(), 2)
    one = message((0, 1), eager=eager)
    sent = put(timeline, 0, one)
    stream = timeline.stream("", 1)
    timeline.compute(stream, 3.0, "a")
    stream.queue.append(one)
    came = timeline.record(stream, Moment())
    timeline.advance(lambda: idle(timeline))
    assert came.time == pytest.approx(received)
    assert sent.time == pytest.approx(2.0 if eager else 5.0)


def test_messages_between_two_stages_follow_each_other_when_one_has_left():
    timeline = StageTimeline(Alone(), 3)
    first, second, other = message((0, 1)), message((0, 1)), message((0, 2))
    for one in (first, second, other):
        put(timeline, 0, one)
    came = [put(timeline, gpu, one) for gpu, one in ((1, first), (1, second), (2, other))]
    timeline.advance(lambda: idle(timeline))
    assert [one.time for one in came] == pytest.approx([2.5, 4.5, 2.5])


def test_a_collective_of_two_stages_begins_when_both_have_reached_it():
    timeline = StageTimeline(Alone(), 2)
    both = QueuedCollective(
        ExchangeCosts(1.0, np.zeros(1), np.ones(1), "ring"), "all_reduce", 1.0, 4, "here:1", n_gpus=2
    )
    ends = [put(timeline, 0, both)]
    stream = timeline.stream("", 1)
    timeline.compute(stream, 3.0, "a")
    stream.queue.append(both)
    ends.append(timeline.record(stream, Moment()))
    timeline.advance(lambda: idle(timeline))
    assert [one.time for one in ends] == pytest.approx([4.0, 4.0])


def test_stages_that_wait_for_each_other_are_a_deadlock():
    timeline = StageTimeline(Alone(), 2)
    put(timeline, 0, message((0, 1)))
    with pytest.raises(ProgramError, match=r"deadlock: .*stage 0: send \(here:1\)"):
        timeline.advance(lambda: idle(timeline))


def test_messages_of_all_ranks_of_a_stage_share_links():
    network = load_network("leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,bandwidth=10Gbps,uplink_bandwidth=10Gbps")
    times = NetworkTimes(network, Placement(np.array(network.hosts, np.int32)), {})
    one, two = times.message(1e6, ((0, 2),)), times.message(1e6, ((0, 2), (1, 3)))
    assert two.time == pytest.approx(2 * one.time)
    assert one.time == pytest.approx(1e6 / 1.25e9)
    assert one.delay > 0


def test_stages_that_do_not_divide_the_ranks_are_refused(capsys):
    assert main(["emulate", "-n", "4", "--stages", "3", "--topology", STAR, "--", "x.py"]) == 2
    assert "--stages must divide the 4 ranks" in capsys.readouterr().err


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--schedule", "interleaved", "--batch", "512")])
def test_stages_take_the_time_of_all_ranks_with_data(tmp_path, flags):
    pytest.importorskip("torch")
    times = []
    for more in ((), ("--stages", "2", "--data", "none")):
        out = tmp_path / "out.json"
        argv = ["emulate", "-n", "4", "--topology", STAR, "--json", str(out), *more, "--", "python", str(PROGRAM)]
        assert main([*argv, "--steps", "1", *flags]) == 0
        times.append(json.loads(out.read_text())["time_s"])
    assert times[0] > 0
    assert times[1] == pytest.approx(times[0], rel=1e-9)


GATHERS = """
import torch
from torch import distributed
distributed.init_process_group("gloo")
rank, (first, mine) = distributed.get_rank(), [distributed.new_group(ranks) for ranks in ([0, 1], [2, 3])]
message, part, whole = torch.zeros(1 << 18), torch.zeros(1 << 17), torch.zeros(1 << 18)
if rank < 2:
    distributed.send(message, rank + 2)
elif torch.cuda.is_available():  # as FSDP2 does: weights are gathered on a stream of their own
    distributed.recv(message, rank - 2)
    with torch.cuda.stream(torch.cuda.Stream()):
        distributed.all_gather_single(whole, part, group=mine)
else:
    distributed.recv(message, rank - 2)
    distributed.all_gather_single(whole, part, group=mine)
"""
# Behind it: what a stage hands on, which both add.
HANDS_ON = """
torch.cuda.synchronize()
distributed.barrier()
torch.cuda.synchronize()
distributed.send(message, rank + 2) if rank < 2 else distributed.recv(message, rank - 2)
distributed.all_reduce(message, group=first if rank < 2 else mine)
torch.cuda.synchronize()
"""


def emulated(tmp_path, program, network, *flags):
    """Return the answer and the calls of a program on 4 GPUs."""
    path, out, events = tmp_path / "prog.py", tmp_path / "out.json", tmp_path / "timeline.json"
    path.write_text(program)
    given = ["-n", "4", "--topology", network, "--json", str(out), "--timeline", str(events), *flags]
    assert main(["emulate", *given, "--", "python", str(path)]) == 0
    tree = json.loads(events.read_text())
    calls = tree if isinstance(tree, list) else tree["traceEvents"]
    return json.loads(out.read_text()), [one for one in calls if one.get("ph") == "X"]


@pytest.mark.slow
def test_in_stages_weights_are_gathered_beside_a_message_and_a_sum_waits_for_one(tmp_path):
    """Why FSDP2 within stages takes longer: the gather takes a share of the port from the message.

    One program, since each of its processes imports torch, which takes most of the time.
    """
    pytest.importorskip("torch")
    network = "star:n_hosts=4,bandwidth=25Gbps,latency=3us"
    took, calls = emulated(tmp_path, GATHERS + HANDS_ON, network, "--stages", "2", "--data", "none")
    (gather,) = [one for one in calls if one["name"] == "all_gather"]
    beside, second = [one for one in calls if one["name"] == "send" and one["pid"] == 0]
    assert (gather["pid"], gather["ts"]) == (1, 0.0)
    assert beside["dur"] > 1.2 * second["dur"]
    assert second["dur"] == pytest.approx((DEFAULT_OVERHEAD + 2**20 / 3.125e9) * 1e6)
    sum_of_two = predict("ring_all_reduce", network, "1MiB", n_ranks=2).time
    done = DEFAULT_OVERHEAD + 2**20 / 3.125e9 + 2 * 3e-6 + sum_of_two  # two links of 25 Gb/s
    assert took["time_s"] - second["ts"] / 1e6 == pytest.approx(done, rel=1e-6)
    times = {(one["operation"], one["calls"]): one["time_s"] for one in took["results"]}
    assert times["all_reduce", 2] == pytest.approx(sum_of_two, rel=1e-9)


@pytest.mark.deep
def test_with_data_weights_are_gathered_after_a_message(tmp_path):
    pytest.importorskip("torch")
    _, calls = emulated(tmp_path, GATHERS, "star:n_hosts=4,bandwidth=25Gbps,latency=0us")
    (gather,) = [one for one in calls if one["name"] == "all_gather" and one["pid"] == 2]
    message = next(one for one in calls if one["name"] == "send" and one["pid"] == 0)
    alone = (DEFAULT_OVERHEAD + (1 << 20) / 3.125e9) * 1e6
    assert (gather["ts"], message["dur"]) == pytest.approx((alone, alone))


@pytest.mark.deep
@pytest.mark.parametrize(("hidden", "least", "most"), [("64", 1.005, 1.1), ("2048", 1 - 1e-5, 1 + 1e-5)])
def test_sharded_stages_take_longer_only_where_messages_and_weights_are_about_equally_long(
    tmp_path, hidden, least, most
):
    pytest.importorskip("torch")
    times = []
    for more in ((), ("--stages", "2", "--data", "none")):
        out = tmp_path / "out.json"
        argv = ["emulate", "-n", "4", "--topology", STAR, "--json", str(out), *more, "--", "python", str(PROGRAM)]
        assert main([*argv, "--steps", "1", "--shard", "--hidden", hidden]) == 0
        times.append(json.loads(out.read_text())["time_s"])
    assert least < times[1] / times[0] < most


@pytest.mark.slow
def test_a_message_between_ranks_that_are_alike_names_the_flag(tmp_path, capfd):
    pytest.importorskip("torch")
    path = tmp_path / "prog.py"
    path.write_text(
        "import torch\nfrom torch import distributed\ndistributed.init_process_group('nccl')\n"
        "distributed.send(torch.zeros(4), 1)\n"
    )
    given = ["-n", "2", "--topology", STAR, "--compute", "roofline:h100", "--", str(path)]
    assert main(["emulate", *given]) == 1
    assert "divide them into stages with --stages N" in capfd.readouterr().err
