import pytest


def test_show_prints_counts_rates_bisection_diameter_and_oversubscription(commsim):
    network = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8,bandwidth=100Gbps,oversubscription=2"
    row = commsim.results("topo", "show", network)["results"][0]
    assert row["nodes"] == {"host": 32, "switch": 6}
    assert row["n_links"] == 2 * (32 + 8)
    assert row["diameter"] == 4
    assert row["oversubscription"]["1"] == pytest.approx(2.0)
    assert row["bisection_Bps"] == pytest.approx(32 / 2 * 12.5e9 / 2)
    assert "100 Gb/s (12.5 GB/s)" in commsim.out
    assert "2:1 at tier 1" in commsim.out


def test_list_names_every_topology(commsim):
    from topologies import TOPOLOGIES

    names = [r["topology"] for r in commsim.results("topo", "list")["results"]]
    assert names == list(TOPOLOGIES)


@pytest.mark.parametrize("suffix", ["toml", "json", "npz"])
def test_a_saved_network_is_the_same_network(commsim, tmp_path, suffix):
    from commsim.run.inputs import load_network

    path = tmp_path / f"net.{suffix}"
    assert commsim("topo", "save", "fat_tree:k=4", "-o", path).code == 0
    assert load_network(str(path)) == load_network("fat_tree:k=4")


def test_an_unknown_suffix_is_refused(commsim, tmp_path):
    assert ".toml" in commsim.refuses("topo", "save", "fat_tree:k=4", "-o", tmp_path / "net.yaml")
