"""An oversubscribed fabric, machines with several workers, and what the public tables do not cover are said."""

import pytest
from remark_codes import codes

import commsim as cs

LEAVES = "leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=4"
HALF = f"{LEAVES},oversubscription=2"
MACHINES = "dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=2"


def remarks(collective, network, **given):
    return cs.solve(cs.scenario_of(collective, network, **({"overhead": "0us"} | given)), ["1MiB"]).remarks


def said(collective, network, **given):
    return codes(remarks(collective, network, **given))


def test_packed_ranks_on_an_oversubscribed_fabric_are_said_to_be():
    """2:1 seemed to cost nothing: nearly all messages of a ring stay in a rack."""
    assert "ranks-packed" in said("ring_all_reduce", HALF)
    assert "ranks-packed" in codes(cs.rank("all_reduce", HALF, ["1MiB"], algorithms=["ring_all_reduce"]).remarks)


@pytest.mark.parametrize(
    ("collective", "network", "given"),
    [
        ("ring_all_reduce", HALF, {"placement": "spread"}),
        ("ring_all_reduce", HALF, {"placement": "packed"}),  # asked for
        ("ring_all_reduce", HALF, {"engine": "closed-form"}),
        ("ring_all_reduce", LEAVES, {}),
        ("direct_all_to_all", HALF, {}),
        ("switchml", HALF, {}),
    ],
)
def test_nothing_is_said_where_the_order_of_ranks_was_chosen_or_changes_little(collective, network, given):
    assert "ranks-packed" not in said(collective, network, **given)


def test_clusters_that_public_tables_miss_are_named_beside_the_interval():
    missed, unknown = "interval-missed", "interval-unknown"
    assert {missed, unknown} & said("nccl", f"{MACHINES},oversubscription=1") == {missed}
    assert {missed, unknown} <= said("nccl", f"{MACHINES},oversubscription=2")
    assert missed in said("nccl", "dgx-h100:sharp=on@star:machines=2")  # its helpers are on switches, in no machine
    for other in ("dgx-h100@star:machines=1", "p5@star:machines=2"):
        assert missed not in said("nccl", other)


def test_workers_that_share_a_machine_are_said_to_send_all_they_have():
    """SHARP seemed to be slower than NCCL with SHARP, which sums inside a machine first."""
    (sharp,) = (one for one in remarks("sharp", "dgx-h100@star:machines=2") if one.code == "ranks-of-machine")
    assert sharp.details.endswith("`nccl` with MACHINE:sharp=on")
    assert "ranks-of-machine" in said("switchml", "dgx-h100@star:machines=2")
    assert "ranks-of-machine" not in said("sharp", "star:n_hosts=4")
