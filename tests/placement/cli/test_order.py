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
    assert "h0,h4,h1 or n[01-08], or an ex" in commsim.refuses("place", "order", "h0,,h1", "--topology", RACKS)


def test_nodes_are_also_host_lists_and_machines(commsim, tmp_path):
    """``n[01-08]`` was refused here only, and a machine where the network has its GPUs."""

    def order(nodes, topology):
        return json.loads(commsim("place", "order", nodes, "--topology", topology, "--json", "-").out)["results"][0]

    assert order("h[0-1,4-5,8-9],h2,h6,h10,h7", RACKS) == order(",".join(NODES), RACKS)
    assert order("h[0,4]x2", RACKS)["order"] == ["h0", "h0", "h4", "h4"]
    machines = "dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=1"
    assert sorted(order("m[0,2,1]", machines)["order"][::8]) == ["m0.gpu0", "m1.gpu0", "m2.gpu0"]
    (tmp_path / "hosts").write_text("m1\nm0\nm1\nm2\n")
    assert order(str(tmp_path / "hosts"), machines)["order"] == ["m1.gpu0", "m1.gpu1", "m0.gpu0", "m2.gpu0"]
