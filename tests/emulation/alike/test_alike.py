"""Ranks that are alike: streams in virtual time, and a program of torch without data."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import commsim as cs
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.emulation.alike.compute import compute_of
from commsim.emulation.alike.network_times import ExchangeCosts, max_min
from commsim.emulation.alike.queued_work import QueuedCollective
from commsim.emulation.alike.virtual_gpu import VirtualGpu

STAR = "star:n_hosts=64,bandwidth=100Gbps"
PROGRAM = """
import torch
from torch import distributed, nn
distributed.init_process_group("nccl")
x = torch.zeros(4 << 20, device="cuda")
w = torch.empty(4096, 4096, device="cuda", dtype=torch.bfloat16)
begin, end = torch.cuda.Event(), torch.cuda.Event()
begin.record()
for _ in range(3):
    work = distributed.all_reduce(x, async_op=True)
    w @ w
    work.wait()
end.record()
print(begin.elapsed_time(end), distributed.get_world_size(), w.sum().item())
if w.sum() > 0:
    print("never")
"""


class Fair:
    """Every collective alone; two share one link."""

    def paces(self, active):
        return [1 / one.time / len(active) for one in active]


def exchange(time):
    return QueuedCollective(
        ExchangeCosts(time, np.zeros(1), np.ones(1), "ring"), "all_reduce", 1.0, ((0, 1, 2, 3),), "here:1"
    )


def test_an_exchange_hides_behind_computation_until_the_program_waits():
    gpu = VirtualGpu(Fair())
    end = gpu.exchange(gpu.stream(), exchange(5.0))
    gpu.compute(3.0, "a")
    gpu.wait(end)
    gpu.compute(1.0, "b")
    assert gpu.synchronize() == pytest.approx(6.0)
    assert gpu.computing == pytest.approx(4.0)
    assert gpu.exchanges[0].exposed == pytest.approx(2.0)


def test_exchanges_of_one_group_follow_each_other_and_those_of_two_share_links():
    one, two = VirtualGpu(Fair()), VirtualGpu(Fair())
    same = one.stream()
    for _ in range(2):
        one.exchange(same, exchange(1.0))
        two.exchange(two.stream(), exchange(1.0))
    ends = [[e.end for e in gpu.exchanges] for gpu in (one, two) if gpu.synchronize()]
    assert ends == [pytest.approx([1.0, 2.0]), pytest.approx([2.0, 2.0])]


def test_computations_of_two_streams_share_the_gpu_and_events_order_them():
    gpu = VirtualGpu(Fair())
    side = gpu.stream()
    gpu.compute(2.0, "a")
    gpu.current = side
    gpu.compute(2.0, "b")
    moment = gpu.record()
    gpu.current = gpu.default
    gpu.wait(moment)
    gpu.compute(1.0, "c")
    assert gpu.synchronize(moment) == pytest.approx(4.0)
    assert gpu.synchronize() == pytest.approx(5.0)


def test_paces_are_max_min():
    uses = [np.array([1.0, 0.0]), np.array([0.5, 0.4]), np.array([0.0, 0.2])]
    assert max_min(uses) == pytest.approx([2 / 3, 2 / 3, 1.0])


@given(
    kinds=st.lists(
        st.tuples(st.integers(1, 4), st.lists(st.floats(0, 1), min_size=5, max_size=5)), min_size=1, max_size=6
    )
)
def test_paces_of_kinds_of_equal_flows_are_those_of_all_one_by_one(kinds):
    found = max_min([np.array(use) for _, use in kinds], [n for n, _ in kinds])
    flows = [(k, np.array(use)) for k, (n, use) in enumerate(kinds) for _ in range(n)]
    # as they are defined: all grow together, and those on a link that is full stop
    pace, growing, left = np.zeros(len(flows)), set(range(len(flows))), np.ones(5)
    while growing:
        taken = sum(flows[i][1] for i in growing)
        step = min([1 - max(pace[i] for i in growing), *(left[taken > 1e-12] / taken[taken > 1e-12])])
        left -= step * taken
        for i in growing:
            pace[i] += step
        full = (left <= 1e-9) & (taken > 1e-12)
        growing = {i for i in growing if pace[i] < 1 - 1e-12 and not (flows[i][1][full] > 1e-12).any()}
    assert pace == pytest.approx([found[k] for k, _ in flows], rel=1e-9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("roofline", "needs a GPU"), ("roofline:x100", "unknown GPU"), ("measured:0", "above 0"),
        ("fast", "--compute must be"), ("roofline:h100:-1", "above 0"),
    ],
)  # fmt: skip
def test_what_is_no_compute_is_one_line(text, said):
    with pytest.raises(InputError, match=said):
        compute_of(text)


@pytest.mark.slow
def test_a_program_on_64_gpus_takes_the_longer_of_its_product_and_its_all_reduce(tmp_path, capfd):
    pytest.importorskip("torch")
    path, out = tmp_path / "prog.py", tmp_path / "out.json"
    path.write_text(PROGRAM)
    files = ["--json", str(out), "--phases", str(tmp_path / "job.json"), "--timeline", str(tmp_path / "time.json")]
    argv = ["emulate", "-n", "64", "--topology", STAR, "--compute", "roofline:h100", *files, "--", str(path)]
    assert main(argv) == 1
    shown, error = capfd.readouterr()
    took, n, value = shown.split()
    alone = cs.predict("ring_all_reduce", STAR, 16 << 20).time  # longer than the product
    assert float(took) == pytest.approx(3e3 * alone, rel=1e-9)
    assert (n, value) == ("64", "nan")
    assert "prog.py:15: the program decides by the value of a tensor" in error
    path.write_text(PROGRAM[: PROGRAM.index("if w.sum")])
    assert main(argv) == 0
    assert len(json.loads((tmp_path / "time.json").read_text())["traceEvents"]) > 8
    (job,) = json.loads((tmp_path / "job.json").read_text())
    assert job["gpus"] == 64
    row = json.loads(out.read_text())["results"][0]
    product = 2 * 4096**3 / (989.4e12 * 0.732)
    assert row["calls"] == 3
    assert row["exposed_s"] == pytest.approx(row["time_s"] - product, rel=1e-6)
    at = argv.index("--")
    assert main([*argv[:at], "--software", "nccl-tcp", *argv[at:]]) == 0  # its ports are slower than the cables
    (demand,) = cs.read_jobs(tmp_path / "job.json")
    (found, *_) = cs.place_jobs({"topology": {"spec": STAR}, "hosts": {"gpus": 1}}, [demand]).candidates
    assert found.alone["prog"] == pytest.approx(json.loads(out.read_text())["step_s"], rel=1e-9)
