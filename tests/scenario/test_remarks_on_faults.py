"""What a fault takes away, what the paths know of it, and where queues mark and pause, is said with the answer."""

import commsim as cs
from commsim.scenario.packet_options import told_queues

LEAF = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4,bandwidth=400Gbps"


def remarks(network, **given):
    return " ".join(cs.scenario_of("ring_all_reduce", network, **given).remarks)


def test_a_cable_that_fails_takes_away_all_that_it_stands_for_where_a_ratio_sets_its_rate():
    assert "uplinks_per_spine" in remarks(f"{LEAF},oversubscription=2", fail=["link:leaf0:spine0"])
    assert "uplinks_per_spine" not in remarks(LEAF, fail=["link:leaf0:spine0"])


def test_paths_by_hash_do_not_know_slower_links_or_fewer_cables():
    assert "ECMP weighs no links" in remarks(LEAF, scale=["link:leaf0:spine0=0.25"])
    assert "ECMP weighs no links" in remarks(f"{LEAF},uplinks_per_spine=2", fail=["link:leaf0:spine0"])
    assert "ECMP" not in remarks("star:n_hosts=4", scale=["link:h0:switch0=0.25"])


def test_where_queues_mark_and_pause_is_said_whoever_chose_it():
    def told(**given):
        asked = cs.scenario_of("ring_all_reduce", LEAF, engine="packet", packets=given)
        return " ".join(told_queues(asked.wish.transport))

    said = told(preset="roce")
    assert "mark from 50 kB (up to 0.01 of packets) to 2000 kB (all)" in said
    assert "pause a link (PFC) from 5000 kB to 4000 kB" in said
    assert "rises every 55 us" in said
    assert "from 200 kB to 100 kB" in told(preset="roce", pause_at=200e3, resume_at=100e3)
    assert told() == ""


def test_a_hash_that_decides_the_busiest_link_is_named():
    two = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,oversubscription=2"
    solution = cs.solve(cs.scenario_of("direct_all_to_all", two), ["1MB"])
    assert any("hash of ECMP" in line for line in solution.remarks)
    star = cs.solve(cs.scenario_of("direct_all_to_all", "star:n_hosts=4"), ["1MB"])
    assert not any("hash of ECMP" in line for line in star.remarks)
