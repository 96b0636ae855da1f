"""Machines with several workers, and what the public tables do not cover, are said."""

from remark_codes import codes

import commsim as cs

MACHINES = "dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=2"


def remarks(collective, network, **given):
    return cs.solve(cs.scenario_of(collective, network, **({"overhead": "0us"} | given)), ["1MiB"]).remarks


def said(collective, network, **given):
    return codes(remarks(collective, network, **given))


def test_clusters_that_public_tables_miss_are_named_beside_the_interval():
    missed, unknown = "interval-missed", "interval-unknown"
    assert {missed, unknown} & said("nccl", f"{MACHINES},oversubscription=1") == {missed}
    assert {missed, unknown} <= said("nccl", f"{MACHINES},oversubscription=2")
    assert "no-interval" in said("nccl", "dgx-h100:sharp=on@star:machines=2")  # three tables of SHARP are too few
    for other in ("dgx-h100@star:machines=1", "p5@star:machines=2"):
        assert missed not in said("nccl", other)


def test_workers_that_share_a_machine_are_said_to_send_all_they_have():
    """SHARP seemed to be slower than NCCL with SHARP, which sums inside a machine first."""
    (sharp,) = (one for one in remarks("sharp", "dgx-h100@star:machines=2") if one.code == "ranks-of-machine")
    assert sharp.details.endswith("`nccl` with MACHINE:sharp=on")
    assert "ranks-of-machine" in said("switchml", "dgx-h100@star:machines=2")
    assert "ranks-of-machine" not in said("sharp", "star:n_hosts=4")


def test_a_machine_that_is_cut_over_leaves_is_named():
    """Half of the NICs of one machine were on another leaf than the rest, and nothing said so."""

    def cut(network, **given):
        return [one.text for one in remarks("nccl", network, **given) if one.code == "machine-cut"]

    three = "dgx-h100@leaf_spine:machines=3,hosts_per_leaf=12,n_spines=2"
    assert cut(three) == ["1 of 3 machines is cut over leaves: NICs of m1 are 4 on leaf0 and 4 on leaf1"]
    assert cut(MACHINES) == []
    rails = "dgx-h100@rail_optimized:machines=4"
    assert cut(rails) == []
    assert cut(rails, fail=["link:m0.nic0:leaf0"]) == []
