"""An oversubscribed fabric, machines with several workers, and what the public tables do not cover are said."""

import pytest

import commsim as cs

LEAVES = "leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=4"
HALF = f"{LEAVES},oversubscription=2"
PACKED = "ranks are packed rack by rack; --placement spread"
MACHINES = "dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=2"


def said(collective, network, **given):
    return "\n".join(
        map(str, cs.solve(cs.scenario_of(collective, network, **({"overhead": "0us"} | given)), ["1MiB"]).remarks)
    )


def test_packed_ranks_on_an_oversubscribed_fabric_are_said_to_be():
    """2:1 seemed to cost nothing: nearly all messages of a ring stay in a rack."""
    assert PACKED in said("ring_all_reduce", HALF)
    assert PACKED in " ".join(map(str, cs.rank("all_reduce", HALF, ["1MiB"], algorithms=["ring_all_reduce"]).remarks))


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
    assert "ranks are packed" not in said(collective, network, **given)


def test_clusters_that_public_tables_miss_are_named_beside_the_interval():
    missed, uncovered = "two public logs of machines of 8 H100", "no public table is of an oversubscribed"
    whole, half = said("nccl", f"{MACHINES},oversubscription=1"), said("nccl", f"{MACHINES},oversubscription=2")
    assert missed in whole
    assert uncovered not in whole
    assert missed in half
    assert uncovered in half
    assert missed in said("nccl", "dgx-h100:sharp=on@star:machines=2")  # its helpers are on switches, in no machine
    for other in ("dgx-h100@star:machines=1", "p5@star:machines=2"):
        assert missed not in said("nccl", other)


def test_workers_that_share_a_machine_are_said_to_send_all_they_have():
    """SHARP seemed to be slower than NCCL with SHARP, which sums inside a machine first."""
    shared = "sends its whole array over its NIC"
    sharp = said("sharp", "dgx-h100@star:machines=2")
    assert shared in sharp
    assert "`nccl` with MACHINE:sharp=on" in sharp
    assert shared in said("switchml", "dgx-h100@star:machines=2")
    assert shared not in said("sharp", "star:n_hosts=4")
