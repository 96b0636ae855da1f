"""Collectives of ranks that are alike and overlap, against the flow engine, where their messages meet one by one."""

import numpy as np
import pytest

import commsim as cs
from commsim.core.placement import Placement
from commsim.emulation.alike.network_times import NetworkTimes
from commsim.emulation.alike.queued_work import QueuedCollective
from commsim.emulation.alike.virtual_gpu import VirtualGpu
from commsim.jobs.composition import read_composition
from commsim.prediction.inputs import load_network
from commsim.prediction.read import scenario_of

NAMED = {"all_reduce": "ring_all_reduce", "all_gather": "ring_all_gather", "reduce_scatter": "ring_reduce_scatter"}
NETWORKS = ("star:n_hosts=8,bandwidth=100Gbps", "fat_tree:k=4,bandwidth=100Gbps",
            "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,uplink_bandwidth=100Gbps")  # fmt: skip
MIB = 2.0**20


@pytest.mark.sample(12)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("groups", [((0, 4), (1, 5)), ((0, 1, 2, 3), (0, 2, 4, 6)), (tuple(range(8)), (0, 4))])
@pytest.mark.parametrize("operations", [("all_reduce", "all_reduce"), ("all_gather", "reduce_scatter")])
@pytest.mark.parametrize("second", [64, 16])
def test_rings_that_overlap_end_when_they_do_in_the_flow_engine(tmp_path, network, groups, operations, second):
    built = load_network(network)
    times = NetworkTimes(built, Placement(np.array(built.hosts[:8], np.int32)), NAMED)
    gpu, jobs = VirtualGpu(times), ""
    exchanges = []
    for number, (group, operation, size) in enumerate(zip(groups, operations, (64, second), strict=True)):
        one = QueuedCollective(times.of(operation, size * MIB, (group,)), operation, size * MIB, len(group), "here:1")
        exchanges.append(one)
        gpu.exchange(gpu.stream(), one)
        ranks = ",".join(map(str, group))
        jobs += (
            f'[[job]]\nname = "{number}"\ncollective = "{NAMED[operation]}"\nranks = "{ranks}"\nsize = "{size}MiB"\n'
        )
    gpu.synchronize()
    (tmp_path / "jobs.toml").write_text(jobs)
    together = cs.solve(scenario_of("", network, jobs=read_composition(tmp_path / "jobs.toml"), overhead="0us"), 0)
    assert [one.end for one in exchanges] == pytest.approx([one.time for one in together.results], rel=5e-3)
