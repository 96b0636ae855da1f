"""What public tables of healthy machines reached stands beside what is expected, with its source."""

import pytest

import commsim as cs
from commsim.diagnosis.reached import reached_by, reached_lines


def test_tables_of_the_same_machines_are_named_with_their_source(commsim):
    answer = commsim.results("expect", "hgx-h100", "--machines", "2", "--operation", "all_reduce", "--size", "8G")
    assert "measured: all_reduce 467.5 to 469.2 GB/s from 8 GiB (2 tables: NVIDIA/nccl-tests issue 309, " in commsim.out
    assert [one["busbw_Bps"] for one in answer["measured"]] == pytest.approx([469.2e9, 467.5e9])


@pytest.mark.parametrize(
    "network",
    ["hgx-h100@star:machines=3", "hgx-h100:n_nics=4@star:machines=2",
     "hgx-h100@leaf_spine:n_leaves=2,n_spines=1,machines=2,oversubscription=4"],
)  # fmt: skip
def test_other_machines_fabrics_and_numbers_of_them_have_none(network):
    found = cs.expect(network, ["all_reduce"], ["1GiB"])
    assert reached_by(found) == []


def test_other_operations_ranks_and_faults_have_none(commsim):
    assert not reached_by(cs.expect("hgx-h100", ["all_gather"], ["1GiB"]))
    assert not reached_by(cs.expect("hgx-h100", ["all_reduce"], ["1GiB"], n_ranks=4))
    asked = ("expect", "hgx-h100", "--operation", "all_reduce", "--size", "1G")
    assert commsim.results(*asked)["measured"]
    assert not commsim.results(*asked, "--scale", "link:gpu0:nvswitch0=0.5")["measured"]
    assert reached_lines([]) == []
