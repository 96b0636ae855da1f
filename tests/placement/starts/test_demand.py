"""Demand: a job takes its own placement's time, and one job takes one iteration time through every interface."""

import json

import numpy as np
import pytest

import commsim as cs
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.placement.cluster import Cluster, read_cluster
from commsim.placement.evaluation import evaluate
from commsim.placement.link_use import link_uses
from commsim.placement.place import place_jobs, rank_placements
from commsim.placement.scores import ScoreSettings
from commsim.placement.starts import job_uses as starts_job_uses
from commsim.placement.starts.demand import RecordedExchange, delivered, demand_of
from commsim.placement.starts.job_uses import job_uses, leaves_machine, use_of_groups
from commsim.training.sharing.periodic import parse_jobs, read_jobs
from commsim.training.timeline import job_row

SIZE = 16_867_368
CLUSTER = """
[topology]
spec = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=10Gbps,uplink_bandwidth=5Gbps"
[hosts]
gpus = 4
"""
NEAR, FAR = ["h0x4", "h1x4"], ["h0x4", "h4x4"]
PROGRAM = f"""
import torch
from torch import distributed
distributed.init_process_group("nccl")
w = torch.empty(8192, 8192, device="cuda", dtype=torch.bfloat16)
x = torch.empty({SIZE // 4}, device="cuda")
w @ w
distributed.all_reduce(x)
torch.cuda.synchronize()
"""


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(CLUSTER)
    return path


@pytest.fixture
def emulated(cluster, tmp_path):
    """Return the step of an emulated program, computing and then an all-reduce of 8 ranks, and its job of demand."""
    pytest.importorskip("torch")
    program, told, job = (tmp_path / name for name in ("prog.py", "emulated.json", "job.json"))
    program.write_text(PROGRAM)
    argv = ["emulate", "-n", "8", "--topology", str(cluster), "--compute", "roofline:h100", "--algorithm",
            "all_reduce=ring_all_reduce", "--json", str(told), "--phases", str(job), "--", str(program)]  # fmt: skip
    assert main(argv) == 0
    answer = json.loads(told.read_text())
    return answer["step_s"], answer["results"][0]["time_s"], job


def test_one_job_takes_one_iteration_time_through_every_interface(cluster, emulated, tmp_path):
    step, _, jobs = emulated
    run = cs.predict("ring_all_reduce", str(cluster), SIZE, n_ranks=8).time
    compute = 2 * 8192**3 / (989.4e12 * 0.732)
    placed, shared = (tmp_path / name for name in ("placed.json", "shared.json"))
    assert main(["place", str(cluster), str(jobs), "--json", str(placed)]) == 0
    (best, *_) = json.loads(placed.read_text())["candidates"]
    assert sorted(set(best["placement"]["prog"])) in (["h0", "h1"], ["h2", "h3"])
    assert main(["workload", "share", str(cluster), str(jobs), "--shifts", str(placed), "--json", str(shared)]) == 0
    (found,) = json.loads(shared.read_text())["results"]
    placement = cs.predict("ring_all_reduce", str(cluster), SIZE, n_ranks=8, placement=str(placed))
    times = [
        step, best["alone_iteration_ms"]["prog"] / 1e3, best["predicted_iteration_ms"]["prog"] / 1e3,
        found["alone_s"], found["iteration_s"], compute + placement.time,
    ]  # fmt: skip
    assert times == pytest.approx([compute + run] * 6, rel=1e-6)


def test_a_job_of_demand_pays_for_its_own_spread(cluster, emulated):
    """Phases that were recorded in one rack were 1.0000x over two, where the uplink has half of the rate."""
    step, took, path = emulated
    (row,) = json.loads(path.read_text())
    jobs = {name: parse_jobs([row | {"placement": at}]) for name, at in (("near", NEAR), ("far", FAR))}
    near, far = rank_placements(str(cluster), jobs).candidates
    assert (near.generator, far.generator) == ("near", "far")
    assert far.alone["prog"] - near.alone["prog"] == pytest.approx(1.75 * SIZE * 8 / 10e9, rel=1e-6)
    inside = parse_jobs([row | {"gpus": 4, "placement": ["h0x4"]}])
    alone = rank_placements(str(cluster), {"in": inside}).candidates[0].alone["prog"]
    assert alone == pytest.approx(step - took, abs=1e-4)
    assert place_jobs(str(cluster), parse_jobs([row])).candidates[0].alone["prog"] == pytest.approx(step)


TWO_BUCKETS = f"""
import torch
from torch import distributed
distributed.init_process_group("nccl")
w = torch.empty(8192, 8192, device="cuda", dtype=torch.bfloat16)
x, y = (torch.empty(n // 4, device="cuda") for n in ({SIZE}, {SIZE // 2}))
for bucket in (x, y):
    w @ w
    distributed.all_reduce(bucket)
torch.cuda.synchronize()
"""


def test_a_job_that_must_cross_racks_takes_one_iteration_time_where_place_puts_it(tmp_path):
    """The emulation on the placement that was chosen, and its own demand written again, agree with the others."""
    pytest.importorskip("torch")
    files = {name: tmp_path / name for name in ("c.toml", "prog.py", "first.json", "placed.json", "shared.json",
                                                "step.json", "again.json", "idle.toml")}  # fmt: skip
    files["idle.toml"].write_text(CLUSTER)
    files["c.toml"].write_text(CLUSTER + "busy = {h1 = 4, h2 = 4, h3 = 4}\n")
    files["prog.py"].write_text(TWO_BUCKETS)
    cluster, program, first, placed, shared, told, again, idle = map(str, files.values())
    emulate = ["emulate", "-n", "8", "--compute", "roofline:h100", "--algorithm", "all_reduce=ring_all_reduce"]
    assert main([*emulate, "--topology", idle, "--phases", first, "--", program]) == 0  # in one rack
    assert main(["place", cluster, first, "--generator", "packed", "--candidates", "1", "--json", placed]) == 0
    (best,) = json.loads(files["placed.json"].read_text())["candidates"]
    assert len(set(best["placement"]["prog"])) == 2
    assert main(["workload", "share", cluster, first, "--shifts", placed, "--json", shared]) == 0
    emulate += ["--topology", cluster, "--placement", placed]
    assert main([*emulate, "--phases", again, "--json", told, "--", program]) == 0
    (found,) = json.loads(files["shared.json"].read_text())["results"]
    run = [cs.predict("ring_all_reduce", cluster, n, n_ranks=8, placement=placed).time for n in (SIZE, SIZE // 2)]
    assert run == pytest.approx([1.75 * n * 8 / 10e9 for n in (SIZE, SIZE // 2)], rel=1e-3)
    times = [
        json.loads(files["step.json"].read_text())["step_s"], best["alone_iteration_ms"]["prog"] / 1e3,
        best["predicted_iteration_ms"]["prog"] / 1e3, found["alone_s"], found["iteration_s"],
    ]  # fmt: skip
    assert times == pytest.approx([2 * 2 * 8192**3 / (989.4e12 * 0.732) + sum(run)] * 5, rel=1e-6)
    demand = [[phase["bytes"] for phase in json.loads(files[name].read_text())[0]["phases"]]
              for name in ("first.json", "again.json")]  # fmt: skip
    assert demand[0] == pytest.approx(demand[1], rel=1e-9)


CROSSING = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps"
EACH_OTHER_RACK = ["h0", "h4", "h1", "h5", "h2", "h6", "h3", "h7"]
GRAPH = """
[[tasks]]
name = "one"
operation = "all_reduce"
group = [0, 1, 2, 3, 4, 5, 6, 7]
size = "16MB"
"""
RECORDERS = {
    "run": (["workload", "run", "--graph", "GRAPH", "--algorithm", "all_reduce=ring_all_reduce"], 16e6),
    "step": (["workload", "step", "--model", "llama3-8b", "--gpu", "h100", "--ranks", "8", "--global-batch", "8",
              "--ignore-memory"], 16_059_990_016),
    "emulate": (["emulate", "-n", "8", "--compute", "roofline:h100", "--algorithm", "all_reduce=ring_all_reduce"],
                SIZE // 4 * 4),
}  # fmt: skip


@pytest.mark.parametrize("recorder", RECORDERS)
@pytest.mark.parametrize("seed", ["0", "1"])
def test_demand_does_not_depend_on_the_hash_with_which_it_was_recorded(tmp_path, recorder, seed):
    """Each rank of a ring sends 7/4 of the data, or 7/8 twice; with seed 1 four times as much was written."""
    if recorder == "emulate":
        pytest.importorskip("torch")
    words, size = RECORDERS[recorder]
    files = {name: tmp_path / name for name in ("graph.toml", "prog.py", "c.toml", "told.json", "job.json")}
    files["graph.toml"].write_text(GRAPH)
    files["prog.py"].write_text(PROGRAM)
    files["c.toml"].write_text(f'[topology]\nspec = "{CROSSING}"\n[hosts]\ngpus = 1\n')
    graph, program, cluster, told, job = map(str, files.values())
    network = "--topology" if recorder == "emulate" else "--network"
    words = [graph if word == "GRAPH" else word for word in words]
    words += [network, cluster, "--placement", "spread", "--seed", seed, "--json", told, "--phases", job]
    assert main([*words, *(["--", program] if recorder == "emulate" else [])]) == 0
    (row,) = json.loads(files["job.json"].read_text())
    assert sum(phase["bytes"] for phase in row["phases"]) == pytest.approx(1.75 * size, rel=1e-9)
    answer = json.loads(files["told.json"].read_text())
    took = answer["iteration_s"] if recorder == "run" else (answer | answer["results"][0])["step_s"]
    placed = parse_jobs([row | {"placement": EACH_OTHER_RACK}])
    settings = ScoreSettings(seed=int(seed))
    (candidate,) = rank_placements(cluster, {"own": placed}, settings=settings).candidates
    assert candidate.alone[row["job"]] == pytest.approx(took, rel=1e-9)


MACHINES = {"topology": {"spec": "dgx-h100@star:machines=4"}}
WHOLE = [f"m{m}.gpu{i}" for m in range(4) for i in range(8)]
# tensor ranks on four machines each
TORN = [f"m{r % 4}.gpu{2 * (r // 8) + (r % 8) // 4}" for r in range(32)]
TENSOR = tuple(tuple(range(8 * g, 8 * g + 8)) for g in range(4))
DATA = tuple(tuple(range(g, 32, 8)) for g in range(8))


def step_on(network, places, exchanges, period):
    """Return the job of exchanges that were recorded on some places."""
    nodes = [network.nodes.index(name) for name in places]
    phases, left = demand_of(network, nodes, exchanges, period)
    return job_row("big", len(places), left, phases)


def test_a_job_takes_on_its_own_place_what_was_recorded_and_its_groups_pay_elsewhere():
    network = read_cluster(MACHINES).network
    exchanges = [
        RecordedExchange(0.01, 0.02, ("ring", TENSOR), 4e9),
        RecordedExchange(0.05, 0.09, ("ring", DATA), 1e9, hidden=0.01),
        RecordedExchange(0.09, 0.10, ("send", tuple((i, i + 8) for i in range(8))), 2e8),
    ]
    row = step_on(network, WHOLE, exchanges, 0.12)
    assert [phase.get("pattern", "ring") for phase in row["phases"]] == ["ring", "ring", "send"]
    alone = {
        name: rank_placements(MACHINES, {name: parse_jobs([row | {"placement": at}])}).candidates[0].alone["big"]
        for name, at in (("whole", WHOLE), ("torn", TORN))
    }
    assert alone["whole"] == pytest.approx(0.12, rel=1e-9)
    rate = network.bandwidth[[network.nodes[i].endswith("nic0") for i in network.src]].min()
    # two of the eight NICs of each machine carry a tensor ring, in place of NVLink
    assert alone["torn"] - alone["whole"] > 4e9 / 2 / rate * 0.9 - 0.01


def test_tensor_groups_inside_of_machines_are_not_on_links_that_jobs_share():
    cluster = read_cluster(MACHINES)
    phases = [{"offset_ms": 0, "bytes": 8e9, "groups": [list(one) for one in TENSOR]},
              {"offset_ms": 50, "bytes": 1e9, "groups": [list(one) for one in DATA]}]  # fmt: skip
    jobs = parse_jobs([{"job": "big", "gpus": 32, "iter_time_ms": 100, "phases": phases, "placement": WHOLE}])
    use = job_uses(cluster, jobs)
    (sent,) = delivered(cluster, jobs, use)
    (phase,) = sent.phases  # the other one takes its time as computation does
    outer = use[0] * leaves_machine(cluster.network)
    assert (phase.n_bytes * outer).max() == pytest.approx(1e9)
    fast = cluster.network.bandwidth.max()
    assert phase.offset > 0.05 + 8e9 / fast * 0.99
    assert sent.period == pytest.approx(0.1 + phase.offset - 0.05 + phase.duration)


def test_ranks_of_an_all_to_all_send_to_all_others_and_messages_go_one_way():
    cluster = read_cluster({"topology": {"spec": "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2"},
                            "hosts": {"gpus": 2}})  # fmt: skip
    names = [cluster.network.link_name(i) for i in range(cluster.network.n_links)]
    places = ("h0", "h0", "h1", "h1", "h2", "h2", "h3", "h3")
    everyone = (tuple(range(8)),)
    experts = dict(zip(names, use_of_groups(cluster.network, places, ("all_to_all", everyone)), strict=True))
    assert experts["h0:leaf0"] == experts["leaf0:h0"] == pytest.approx(2 * 6 / 7)
    assert experts["leaf0:spine0"] == pytest.approx(4 * 4 / 7)
    one_way = dict(zip(names, use_of_groups(cluster.network, places, ("send", ((0, 4), (1, 5)))), strict=True))
    assert (one_way["h0:leaf0"], one_way["leaf0:h0"], one_way["leaf0:spine0"]) == (2, 0, 2)


def test_groups_that_leave_their_machine_count_and_rings_share_the_nics():
    machines = {"topology": {"spec": "dgx-h100@star:machines=4"}}
    cluster = read_cluster(machines)
    phase = {"offset_ms": 10, "bytes": 8e9}
    one = {"job": "a", "gpus": 16, "iter_time_ms": 100, "phases": [phase]}
    gpus = [f"m{m}.gpu{i}" for m in range(2) for i in range(8)]
    half = [f"m{m}.gpu{i}" for m in range(4) for i in range(4)]
    alone = [
        rank_placements(cluster, {"x": parse_jobs([one | {"placement": at}])}).candidates[0].alone["a"] - 0.1
        for at in (gpus, half)
    ]
    rate = cluster.network.bandwidth[
        [n.endswith("nic0") for n in (cluster.network.nodes[i] for i in cluster.network.src)]
    ]
    # all bytes pass each GPU of a machine, and leave it by eight NICs, or by four
    times = [max(8e9 / cluster.network.bandwidth.max(), 8e9 / n / rate.min()) for n in (8, 4)]
    assert alone == pytest.approx(times, rel=0.015)  # the way from a GPU to its NIC is a little slower
    tensor = [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]
    use = [
        job_uses(cluster, parse_jobs([one | {"phases": [phase | {"groups": tensor}], "placement": at}]))[0]
        for at in (gpus, half)
    ]
    outer = np.array([cluster.network.machine[i] for i in cluster.network.src]) < 0
    assert use[0][outer].sum() == 0 < use[1][outer].sum()


@pytest.mark.parametrize(
    ("phase", "wanted"),
    [
        ({"bytes": 0}, "bytes must be more than 0"),
        ({"bytes": 5, "groups": [[0, 1], [1]]}, r"groups must be groups of ranks 0\.\.1, each in one"),
        ({"bytes": 5, "rate_Gbps": 1}, "rate_Gbps"),
        ({"bytes": 5, "pattern": "tree"}, "pattern must be one of ring, send, all_to_all"),
    ],
)
def test_wrong_demand_is_refused(phase, wanted):
    with pytest.raises(InputError, match=wanted):
        read_jobs([{"job": "a", "gpus": 2, "iter_time_ms": 100, "phases": [{"offset_ms": 0} | phase]}])


def test_demand_may_begin_when_all_computation_is_over():
    """400 ms of computation and then 5 GB at 12.5 GB/s: the end of an iteration without communication was refused."""
    row = {"job": "a", "gpus": 2, "iter_time_ms": 400, "placement": ["h0", "h1"]}
    network = cs.load_network("star:n_hosts=2,bandwidth=100Gbps")
    cluster = Cluster(network, (network.kind == 0).astype(int))
    phases = [{"offset_ms": 100, "bytes": 1.25e9}, {"offset_ms": 400, "bytes": 5e9}]
    found = evaluate(cluster, parse_jobs([row | {"phases": phases}]))
    assert found.predicted["a"] == pytest.approx(0.9)
    for late in ({"offset_ms": 400.1, "bytes": 5e9}, {"offset_ms": 400, "dur_ms": 1, "rate_Gbps": 1}):
        with pytest.raises(InputError, match="less than the iteration time"):
            parse_jobs([row | {"phases": [late]}])


def test_a_job_that_stays_in_several_candidates_is_routed_once(tmp_path, monkeypatch):
    """Each of ten candidates found the paths of all running jobs anew."""
    (tmp_path / "c.toml").write_text(CLUSTER)
    cluster, asked = read_cluster(tmp_path / "c.toml"), []
    rate = {"gpus": 8, "iter_time_ms": 50, "phases": [{"offset_ms": 0, "dur_ms": 9, "rate_Gbps": 5}]}
    bytes_of = rate | {"phases": [{"offset_ms": 50, "bytes": SIZE}]}
    rows = [(rate, FAR), (rate, FAR), (bytes_of, FAR), (bytes_of, NEAR), (bytes_of, FAR)]
    jobs = parse_jobs([row | {"job": f"j{i}", "placement": at} for i, (row, at) in enumerate(rows)], "jobs")
    each = np.concatenate([job_uses(cluster, [job], 3) for job in jobs])
    monkeypatch.setattr(
        starts_job_uses, "link_uses", lambda on, places, seed: asked.append(places) or link_uses(on, places, seed)
    )
    assert np.array_equal(job_uses(cluster, jobs, 3), each)
    assert [len(places) for places in asked] == [3]
