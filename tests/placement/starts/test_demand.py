"""Demand: a job takes its own placement's time, and one job takes one iteration time through every interface."""

import json

import numpy as np
import pytest

import commsim as cs
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.emulation.current import current_rank
from commsim.emulation.rank_calls import Collective
from commsim.placement.cluster import read_cluster
from commsim.placement.link_use import job_uses
from commsim.placement.place import place_jobs, rank_placements
from commsim.placement.starts.demand import as_demand
from commsim.prediction.inputs import load_network, load_placement
from commsim.training.sharing.periodic import JobPhase, parse_jobs, read_jobs
from commsim.training.timeline import job_row

SIZE, COMPUTE = 16_867_368, 0.076
CLUSTER = """
[topology]
spec = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=10Gbps,uplink_bandwidth=5Gbps"
[hosts]
gpus = 4
"""
NEAR, FAR = ["h0x4", "h1x4"], ["h0x4", "h4x4"]


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(CLUSTER)
    return path


def recorded(cluster):
    """Return a job of demand from an emulated step: computing, then an all-reduce of 8 ranks on two hosts."""

    def program():
        rank = current_rank()
        rank.compute(COMPUTE)
        call = Collective("all_reduce", tuple(range(8)), "g", float(SIZE), algorithm="ring_all_reduce")
        rank.wait([rank.post(call)])

    time = cs.emulate(program, str(cluster), 8).time
    network = load_network(str(cluster))
    took = time - COMPUTE
    phases, period = as_demand(
        network, load_placement("packed", network, 8).nodes.tolist(),
        [JobPhase(COMPUTE, took, 1.75 * SIZE / took)], time,
    )  # fmt: skip
    return time, job_row("v", 8, period, phases)


def test_one_job_takes_one_iteration_time_through_every_interface(cluster, tmp_path):
    run = COMPUTE + cs.predict("ring_all_reduce", str(cluster), SIZE, n_ranks=8).time
    emulated, row = recorded(cluster)
    jobs, placed, shared = (tmp_path / name for name in ("jobs.json", "placed.json", "shared.json"))
    jobs.write_text(json.dumps([row]))
    assert main(["place", str(cluster), str(jobs), "--json", str(placed)]) == 0
    (best, *_) = json.loads(placed.read_text())["candidates"]
    assert sorted(set(best["placement"]["v"])) in (["h0", "h1"], ["h2", "h3"])
    assert main(["workload", "share", str(cluster), str(jobs), "--shifts", str(placed), "--json", str(shared)]) == 0
    (found,) = json.loads(shared.read_text())["results"]
    placement = cs.predict("ring_all_reduce", str(cluster), SIZE, n_ranks=8, placement=str(placed))
    times = [
        emulated, best["alone_iteration_ms"]["v"] / 1e3, best["predicted_iteration_ms"]["v"] / 1e3,
        found["alone_s"], found["iteration_s"], COMPUTE + placement.time,
    ]  # fmt: skip
    assert times == pytest.approx([run] * 6, rel=1e-6)


def test_a_job_of_demand_pays_for_its_own_spread(cluster):
    """Phases that were recorded in one rack were 1.0000x over two, where the uplink has half of the rate."""
    _, row = recorded(cluster)
    jobs = {name: parse_jobs([row | {"placement": at}]) for name, at in (("near", NEAR), ("far", FAR))}
    near, far = rank_placements(str(cluster), jobs).candidates
    assert (near.generator, far.generator) == ("near", "far")
    assert far.alone["v"] - near.alone["v"] == pytest.approx(1.75 * SIZE * 8 / 10e9, rel=1e-6)
    inside = parse_jobs([row | {"gpus": 4, "placement": ["h0x4"]}])
    assert rank_placements(str(cluster), {"in": inside}).candidates[0].alone["v"] == pytest.approx(COMPUTE, abs=1e-4)
    assert place_jobs(str(cluster), parse_jobs([row])).candidates[0].alone["v"] == pytest.approx(near.alone["v"])


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
    assert alone[1] == pytest.approx(2 * alone[0], rel=0.01)  # four NICs of each machine in place of eight
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
    ],
)
def test_wrong_demand_is_refused(phase, wanted):
    with pytest.raises(InputError, match=wanted):
        read_jobs([{"job": "a", "gpus": 2, "iter_time_ms": 100, "phases": [{"offset_ms": 0} | phase]}])
