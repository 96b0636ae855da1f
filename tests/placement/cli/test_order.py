import json

RACKS = "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=4,oversubscription=2"
NODES = ["h0", "h1", "h4", "h5", "h8", "h9", "h2", "h6", "h10", "h7"]


def test_the_json_has_the_order_its_crossings_and_times(commsim, tmp_path):
    (tmp_path / "nodes.txt").write_text("\n".join(NODES))
    of_list = commsim("place", "order", ",".join(NODES), "--topology", RACKS, "--json", "-")
    (row,) = json.loads(of_list.out)["results"]
    words = ("place", "order", tmp_path / "nodes.txt", "--topology", RACKS, "-o", tmp_path / "out.txt")
    assert commsim.results(*words)["results"] == [row]
    assert (tmp_path / "out.txt").read_text().split() == row["order"]
    assert row.keys() >= {"order", "crossings_before", "crossings_after", "time_before_s", "time_after_s"}
    assert "crossings of racks" in commsim.out


def test_wrong_nodes_are_one_line(commsim):
    assert "named 'x'" in commsim.refuses("place", "order", "h0,x", "--topology", RACKS)
    assert "h0,h4,h1, or an existing file" in commsim.refuses("place", "order", "h0,,h1", "--topology", RACKS)
