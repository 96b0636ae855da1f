"""Programs of torch.distributed whose ranks are processes: real sums on the emulated network."""

import json

import pytest

import commsim as cs
from commsim.cli import main

STAR = "star:n_hosts=4,bandwidth=25Gbps,latency=5us"
PROGRAM = """
import torch
from torch import distributed as d
from torch.distributed._functional_collectives import all_reduce
d.init_process_group("gloo")
r, n = d.get_rank(), d.get_world_size()
x = torch.ones(1 << 18) * r
d.all_reduce(x)
assert (x == 1).all()
o = torch.zeros(2)
d.reduce_scatter_single(o, torch.arange(2.0 * n) * (r + 1))
assert o.tolist() == [3.0 * 2 * r, 3.0 * (2 * r + 1)]
b = torch.full((3,), r, dtype=torch.bfloat16)
d.broadcast(b, 1)
assert (b == 1).all()
a = torch.zeros(n, dtype=torch.int64)
d.all_to_all_single(a, torch.arange(n) + 10 * r)
assert a.tolist() == [10 * k + r for k in range(n)]
y = torch.zeros(4)
for work in d.batch_isend_irecv([d.P2POp(d.isend, b, (r + 1) % n), d.P2POp(d.irecv, b.clone(), (r - 1) % n)]):
    work.wait()
half = d.new_group([0, 1])
if r < 2:
    d.all_reduce(y.fill_(r), op=d.ReduceOp.MAX, group=half)
    assert (y == 1).all()
everyone = [None] * n
d.all_gather_object(everyone, {"rank": r})
assert [one["rank"] for one in everyone] == list(range(n))
assert (all_reduce(torch.ones(2), "avg", d.group.WORLD) == 1).all()
"""


# Behind the collectives: three steps, of which the last is told.
TRAINS = """
import time
from torch.nn.parallel import DistributedDataParallel
model = DistributedDataParallel(torch.nn.Linear(400, 400, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    began = time.perf_counter()
    time.sleep(0.001)  # computes
    model(torch.ones(1, 400)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if d.get_rank() == 0:
        print(f"took {time.perf_counter() - began!r}")
"""


@pytest.mark.slow
def test_collectives_and_steps_with_data_are_right_and_take_what_is_predicted(tmp_path, capfd):
    """One program, since each of its processes imports torch, which takes most of the time."""
    pytest.importorskip("torch")
    path, out = tmp_path / "prog.py", tmp_path / "out.json"
    path.write_text(PROGRAM + TRAINS)
    assert main(["emulate", "-n", "2", "--topology", STAR, "--json", str(out), "--", "python", str(path)]) == 0
    printed, found = capfd.readouterr().out, json.loads(out.read_text())
    row = next(one for one in found["results"] if one["size_B"] == 1 << 20)
    assert row["algorithm"] == "ring_all_reduce"
    assert row["time_s"] == pytest.approx(cs.predict("ring_all_reduce", STAR, "1MiB", n_ranks=2).time, rel=1e-9)
    took = [float(line.split()[1]) for line in printed.splitlines() if line.startswith("took")]
    (row,) = [one for one in found["results"] if one["operation"] == "all_reduce" and one["size_B"] == 640000]
    assert found["step_s"] == pytest.approx(took[2], rel=1e-9)
    assert found["exposed_s"] == pytest.approx(took[2] - 0.001, rel=1e-9)
    assert row["exposed_s"] == pytest.approx(found["exposed_s"], rel=1e-9)
    lines = dict(line.split(None, 1) for line in printed.splitlines() if line.startswith(("step", "exposed")))
    assert lines["step"].endswith("the last one")
    assert lines["exposed"].endswith("mean of the ranks")


OVERLAPPING = """
import torch
from torch import distributed as d
d.init_process_group("gloo")
groups = d.new_group([0, 2]), d.new_group([1, 3])
mine = groups[d.get_rank() % 2]
d.all_reduce(torch.ones((1 << 18) * (1 + d.get_rank() % 2)), group=mine)
"""
# what the program does, by hand: 1 MiB and 2 MiB over one uplink each way
JOBS = """
[[job]]
collective = "ring_all_reduce"
ranks = [0, 2]
size = "1MiB"
[[job]]
collective = "ring_all_reduce"
ranks = [1, 3]
size = "2MiB"
"""


@pytest.mark.deep
@pytest.mark.slow
def test_groups_that_overlap_take_what_a_job_file_written_by_hand_takes(tmp_path):
    pytest.importorskip("torch")
    thin = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,bandwidth=25Gbps,uplink_bandwidth=10Gbps"
    path, jobs, out = tmp_path / "prog.py", tmp_path / "jobs.toml", tmp_path / "out.json"
    path.write_text(OVERLAPPING)
    jobs.write_text(JOBS)
    assert main(["emulate", "-n", "4", "--topology", thin, "--json", str(out), "--", "python", str(path)]) == 0
    found = {row["size_B"]: row["time_s"] for row in json.loads(out.read_text())["results"] if row["size_B"] > 1000}
    assert main(["run", "--topology", thin, "--jobs", str(jobs), "--json", str(out)]) == 0
    together = json.loads(out.read_text())["results"]
    assert [found[1 << 20], found[2 << 20]] == pytest.approx([row["time_s"] for row in together], rel=1e-9)
    assert min(row["slowdown"] for row in together) > 1.4  # they did share the uplinks
