"""Jobs that leave their machines by fewer NICs than they could: ranked last of equals, and named."""

from collections import Counter

import pytest

import commsim as cs
from commsim.placement.cluster import read_cluster
from commsim.placement.nic_counts import nic_counts
from commsim.training.sharing.periodic import read_jobs

MACHINES = {"topology": {"spec": "pcie_host:n_gpus=4,n_nics=2@leaf_spine:machines=8,n_leaves=2,n_spines=2"}}
PHASES = [{"offset_ms": 0, "dur_ms": 10, "rate_Gbps": 1}]


def job(n, *placement):
    more = {"placement": [*placement]} if placement else {}
    return {"job": "A", "gpus": n, "iter_time_ms": 100, "phases": PHASES, **more}


EVEN = job(8, "m0x4", "m4x4")
UNEVEN = job(8, "m0x4", "m1x3", "m2x1")


def test_of_equals_the_one_whose_job_leaves_its_machines_by_more_nics_comes_first():
    """A job with one GPU on a machine has one ring: half the NICs carry its bytes, and no estimate says so."""
    ranking = cs.rank_placements(MACHINES, {"uneven": [UNEVEN], "even": [EVEN]})
    assert [one.stretch for one in ranking.candidates] == [1.0, 1.0]
    assert [one.generator for one in ranking.candidates] == ["even", "uneven"]
    (said,) = [one for one in ranking.remarks if one.code == "few-nics"]
    assert said.text == "job A leaves its machines by 1 NIC in candidate 2 and by 2 in candidate 1"
    assert said.needed


@pytest.mark.parametrize(
    ("placed", "said"),
    [
        (UNEVEN, "by 1 NIC in candidate 1, and 2 are possible"),
        (job(2, "m0x1", "m1x1"), None),  # one GPU on each of two machines: no more than one ring
        (job(4, "m0x4"), None),  # stays in its machine
        (job(5, "m0x4", "m1x1"), "by 1 NIC in candidate 1, and 2 are possible"),  # 3 and 2 have two rings
        (job(5, "m0x3", "m1x2"), None),
    ],
)
def test_fewer_nics_than_possible_are_told(placed, said):
    remarks = cs.rank_placements(MACHINES, {"given": [placed]}).remarks
    told = [one.text for one in remarks if one.code == "few-nics"]
    assert [said in one for one in told] == ([True] if said else [])


@pytest.mark.parametrize("groups", [{}, {"groups": [[0, 1, 2, 3], [4, 5, 6]]}])
def test_a_job_of_demand_is_not_said_to_leave_by_few_nics(groups):
    """Its bytes take what its NICs need; a job whose groups stay inside of machines was told of NICs, too."""
    cluster = {"topology": {"spec": "dgx-h100@leaf_spine:machines=8,n_leaves=2,n_spines=2"}}
    demand = {"phases": [{"offset_ms": 90, "bytes": 1e9, **groups}]}
    ranking = cs.rank_placements(cluster, {"uneven": [UNEVEN | demand], "even": [EVEN | demand]})
    stretch = {one.generator: one.stretch for one in ranking.candidates}
    assert (stretch["uneven"] > stretch["even"] + 0.05) == (not groups)
    assert "few-nics" not in {one.code for one in ranking.remarks}


def test_of_equals_the_one_on_fewer_machines_comes_first():
    """Ranks of a job whose host failed were put on two machines, with whole machines free."""
    split, whole = job(8, "m0x4", "m1x2", "m2x2"), job(8, "m0x4", "m1x4")
    ranking = cs.rank_placements(MACHINES, {"split": [split], "whole": [whole]})
    assert [one.generator for one in ranking.candidates] == ["whole", "split"]
    running = [job(16, "m0x4", "m1x4", "m2x4", "m3x4")]
    after = cs.place_jobs(MACHINES, running, fail=["host:m1"]).candidates[0].placement["A"]
    machines = [name.split(".")[0] for name in after]
    assert len(set(machines)) == 4
    assert all(machines.count(name) == 4 for name in machines)


def test_a_job_that_is_on_a_machine_and_on_a_host_without_nics_is_not_judged():
    """Plain hosts have numbers below 0, which must not be taken for those of machines from the end."""
    jobs = read_jobs([job(5)])
    assert nic_counts(read_cluster(MACHINES), jobs, [Counter({0: 4, 1: 1})]) == {"A": (1, 2)}
    assert nic_counts(read_cluster(MACHINES), jobs, [Counter({0: 4, -3: 1})]) == {}
