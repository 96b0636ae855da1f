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


HANDED_ON = """
import torch
from torch import distributed as d
d.init_process_group("nccl")
r = d.get_rank()
x = torch.zeros(1 << 18, device="cuda")
groups = d.new_group([0, 1]), d.new_group([2, 3])
d.send(x, r + 2) if r < 2 else d.recv(x, r - 2)
d.all_reduce(x, group=groups[r // 2])
torch.cuda.synchronize()
"""


@pytest.mark.slow
def test_what_a_stage_hands_on_comes_before_the_next_stage_adds(tmp_path):
    pytest.importorskip("torch")
    path, out, network = tmp_path / "prog.py", tmp_path / "out.json", f"{STAR},latency=3us"
    path.write_text(HANDED_ON)
    argv = ["emulate", "-n", "4", "--topology", network, "--stages", "2", "--json", str(out), "--", "python", str(path)]
    assert main(argv) == 0
    took = json.loads(out.read_text())
    sum_of_two = predict("ring_all_reduce", network, "1MiB", n_ranks=2).time
    assert [(one["operation"], one["calls"]) for one in took["results"]] == [("all_reduce", 2), ("send", 1)]
    assert took["results"][0]["time_s"] == pytest.approx(sum_of_two, rel=1e-9)
    assert took["time_s"] == pytest.approx(  # two links of 25 Gb/s
        DEFAULT_OVERHEAD + 2**20 / 3.125e9 + 2 * 3e-6 + sum_of_two, rel=1e-9
    )


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
rank, (_, mine) = distributed.get_rank(), [distributed.new_group(ranks) for ranks in ([0, 1], [2, 3])]
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


def gathered(tmp_path, rank, *flags):
    """Return when a rank begins to gather, how long the message of rank 0 takes, and how long it would take alone."""
    path, out = tmp_path / "prog.py", tmp_path / "timeline.json"
    path.write_text(GATHERS)
    network = "star:n_hosts=4,bandwidth=25Gbps,latency=0us"
    given = ["-n", "4", "--topology", network, "--timeline", str(out), *flags, "--", "python", str(path)]
    assert main(["emulate", *given]) == 0
    tree = json.loads(out.read_text())
    events = [one for one in (tree if isinstance(tree, list) else tree["traceEvents"]) if one.get("ph") == "X"]
    (gather,) = [one for one in events if one["name"] == "all_gather" and one["pid"] == rank]
    message = next(one for one in events if one["name"] == "send" and one["pid"] == 0)
    return gather["ts"], message["dur"], (DEFAULT_OVERHEAD + (1 << 20) / 3.125e9) * 1e6


@pytest.mark.slow
def test_in_stages_weights_are_gathered_beside_a_message(tmp_path):
    """Why FSDP2 within stages takes longer: the gather takes a share of the port from the message."""
    pytest.importorskip("torch")
    beside, shared, alone = gathered(tmp_path, 1, "--stages", "2", "--data", "none")
    assert beside == 0.0
    assert shared > 1.2 * alone


@pytest.mark.deep
def test_with_data_weights_are_gathered_after_a_message(tmp_path):
    pytest.importorskip("torch")
    after, sent, alone = gathered(tmp_path, 2)
    assert (after, sent) == pytest.approx((alone, alone))


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
