"""Intervals by kind of machines: what a kind has, and what has none."""

import pytest

import commsim as cs
from commsim.nccl.intervals import interval_of, intervals, kind_of, read_intervals, size_class


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ((8, 1, ""), "machine"), ((72, 1, ""), "nvlink_domain"), ((16, 2, "infiniband"), "infiniband"),
        ((16, 2, "roce"), "roce"), ((16, 2, "efa2"), "cloud"), ((16, 2, "tcpx"), "cloud"),
        ((8, 2, "slingshot"), "slingshot"), ((8, 2, "a new one"), "a new one"),
        ((128, 2, "roce", "nvls_tree"), "racks"), ((128, 2, "roce"), "racks_exchange"),
    ],
)  # fmt: skip
def test_a_kind_is_one_machine_one_domain_or_a_network(where, kind):
    assert kind_of(*where) == kind


def test_sizes_and_kinds_are_read_from_the_file():
    found = read_intervals("[roce]\nsmall = [0.5, 2.0]\n")
    assert found == {("roce", "small"): (0.5, 2.0)}
    assert [size_class(size) for size in (2**16 - 1, 2**16, 2**24)] == ["small", "middle", "large"]
    assert all(low < high for low, high in intervals().values())


def test_a_kind_of_one_operator_s_tables_has_no_interval():
    """All tables of Slingshot are of one operator: its predictions have a time, and no interval."""
    assert interval_of("slingshot", 2**20) == (1.0, 1.0)
    assert cs.predict("nccl_all_reduce", "alps@star:machines=2", 2**20).interval is None
    assert cs.predict("nccl_all_reduce", "dgx-h100", 2**20).interval is not None


@pytest.mark.parametrize("call", ["nccl_all_reduce", "nccl_all_to_all"])
def test_racks_have_too_few_tables_for_an_interval(call):
    """Three tables of all-reduces of two operators, one of an exchange: together they gave 0.95 to 4.42."""
    racks = "gb300-nvl72:n_gpus=16,n_nics=16,n_pcie_switches=16,net=roce@star:machines=2"
    assert cs.predict(call, racks, 2**30).interval is None


def test_rccl_has_its_own_interval():
    result = cs.predict("rccl_all_reduce", "mi300x", 2**26)
    low, high = interval_of("rccl", 2**26)
    assert result.interval == pytest.approx((result.time * low, result.time * high))
