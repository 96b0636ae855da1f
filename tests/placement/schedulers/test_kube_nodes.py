"""Nodes as ``kubectl get nodes -o json`` prints them become a cluster."""

import json

import pytest

from commsim.cli import main
from commsim.core.errors import InputError
from commsim.placement.cluster import read_cluster
from commsim.placement.place import place_jobs
from commsim.placement.schedulers.kube_nodes import read_kube_nodes

V1 = ("fabric.topograph.run/tier-0", "fabric.topograph.run/tier-1")
V0 = ("network.topology.nvidia.com/leaf", "network.topology.nvidia.com/spine")
FIRST = ("network.topology.nvidia.com/block", "network.topology.nvidia.com/spine")
OLDEST = ("topology.kubernetes.io/network-level-1", "topology.kubernetes.io/network-level-2")
OWN = ("example.com/rack", "example.com/hall")


def node(name, labels, gpus="8", **spec):
    """Return a node with what the API server adds to it."""
    amounts = {"cpu": "192", "memory": "2113541Mi", "pods": "110"} | ({"nvidia.com/gpu": gpus} if gpus else {})
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": "6f2d", "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {"podCIDR": "10.244.1.0/24", **spec},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip


def listed(keys, n=4):
    items = [node(f"n{i}", {keys[0]: f"leaf{i // 2}", keys[1]: "spine"}) for i in range(n)]
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}


@pytest.mark.parametrize("keys", [V1, V0, FIRST, OLDEST])
def test_switches_are_those_of_the_labels_that_topograph_sets(keys):
    tree = listed(keys)
    tree["items"][0]["metadata"]["labels"]["network.topology.nvidia.com/accelerator"] = "nvl1"
    nodes = read_kube_nodes(json.dumps(tree))
    assert nodes.labels == keys
    assert {node: tuple(above) for node, above in nodes.tree.layers().items()} == {
        f"n{i}": (f"leaf{i // 2}", "spine") for i in range(4)
    }
    assert nodes.gpus == dict.fromkeys(("n0", "n1", "n2", "n3"), 8)


def test_labels_of_ones_own_are_named():
    with pytest.raises(InputError, match=r"node n0 has none of the labels .* name its own with --labels"):
        read_kube_nodes(json.dumps(listed(OWN)))
    assert read_kube_nodes(json.dumps(listed(OWN)), labels=OWN).tree.layers()["n3"] == ("leaf1", "spine")


def test_nodes_without_gpus_are_left_out_and_cordoned_ones_are_busy():
    tree = listed(V1)
    tree["items"] += [node("control", {}, gpus=None), node("n4", {V1[0]: "leaf1", V1[1]: "spine"}, unschedulable=True)]
    nodes = read_kube_nodes(json.dumps(tree))
    assert nodes.busy == {"n4": 8}
    assert "control" not in nodes.gpus
    assert nodes.remarks == (
        "1 of 6 nodes without nvidia.com/gpu are left out", "1 node takes no pods (unschedulable): their GPUs are busy",
    )  # fmt: skip


def test_nodes_that_are_not_ready_are_busy():
    """A node that the kubelet had left was offered to jobs."""
    tree = listed(V1)
    for item, status in zip(tree["items"], ("True", "False", "Unknown"), strict=False):
        item["status"]["conditions"] = [
            {"type": "DiskPressure", "status": "False"},
            {"type": "Ready", "status": status},
        ]
    nodes = read_kube_nodes(json.dumps(tree))
    assert nodes.busy == {"n1": 8, "n2": 8}
    assert nodes.remarks == ("2 nodes take no pods (not ready): their GPUs are busy",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["items"][2]["metadata"]["labels"].pop(V1[0]), "node n2 has no label .*/tier-0, which node n0 has"),
        (lambda t: t["items"][2]["metadata"]["labels"].update({V1[0]: ""}), "node n2 has no label .*/tier-0"),
        (lambda t: t["items"][2]["metadata"]["labels"].update({V1[0]: 7}), "node n2 has no label .*/tier-0"),
        (lambda t: t["items"][1]["metadata"].update(name="n0"), "n0"), (lambda t: t.update(items=[]), "has no nodes"),
        (lambda t: t["items"][0]["status"]["allocatable"].update({"nvidia.com/gpu": "8k"}), "nvidia.com/gpu must be a"),
        (lambda t: [i["status"].update(allocatable={}) for i in t["items"]], "no node has nvidia.com/gpu"),
        (lambda t: t["items"][0]["metadata"]["labels"].update({V1[0]: "a b"}), "the name of a switch"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(change, message):
    tree = listed(V1)
    change(tree)
    with pytest.raises(InputError, match=message):
        read_kube_nodes(json.dumps(tree))
    with pytest.raises(InputError, match=r"nodes\.json"):
        read_kube_nodes("{")


def test_a_label_that_no_node_has_is_the_one_that_was_asked_for():
    """The message said that the node has it."""
    with pytest.raises(InputError, match="node n0 has no label ex/none, which --labels names"):
        read_kube_nodes(json.dumps(listed(V1)), labels=("ex/none",))


def test_nodes_become_a_cluster_that_jobs_are_placed_on(tmp_path):
    tree = listed(V0)
    tree["items"][3]["status"]["allocatable"]["nvidia.com/gpu"] = "4"
    (tmp_path / "nodes.json").write_text(json.dumps(tree))
    words = ["place", "import", str(tmp_path / "nodes.json"), "--from", "kube-nodes", "-o", str(tmp_path / "c.toml")]
    assert main([*words, "--tier-bandwidth", "1=100Gbps,2=2:1"]) == 0
    cluster = read_cluster(tmp_path / "c.toml")
    assert int(cluster.gpus.sum()) == 28
    assert {name for name, n in zip(cluster.network.nodes, cluster.gpus.tolist(), strict=True) if n == 4} == {"n3"}
    assert main([*words, "--tier-bandwidth", "1=100Gbps,2=2:1", "--gpus-per-host", "8"]) == 2
    assert main(words) == 2


def test_a_tier_too_many_is_told_which_tiers_there_are(commsim, tmp_path):
    (tmp_path / "nodes.json").write_text(json.dumps(listed(OWN)))
    words = ("place", "import", tmp_path / "nodes.json", "--from", "kube-nodes", "-o", tmp_path / "c.toml")
    said = commsim.refuses(*words, "--labels", ",".join(OWN), "--tier-bandwidth", "1=100Gbps,2=2:1,3=2:1")
    assert "nodes.json: switches by the labels example.com/rack, example.com/hall: --tier-bandwidth has" in said
    assert "but the highest is 2: 1 (node n0 to leaf0), 2 (switch leaf0 to spine)" in said


def test_what_is_not_joined_is_said_before_what_was_read(tmp_path, capsys):
    """A terminal shows three remarks, and the fourth was that no path joins the racks."""
    tree = listed(OWN)
    tree["items"][3]["spec"] = {"unschedulable": True}
    (tmp_path / "nodes.json").write_text(json.dumps(tree))
    words = ["place", "import", str(tmp_path / "nodes.json"), "-o", str(tmp_path / "c.toml"), "--labels", OWN[0]]
    assert main([*words, "--tier-bandwidth", "1=100Gbps"]) == 0
    said = capsys.readouterr()
    assert "no path joins the 2 switches at the top: 2=2:1" in said.out + said.err
    assert "1 node takes no pods" in said.out + said.err


def test_racks_of_one_label_are_one_cluster(commsim, tmp_path):
    """Labels that name the racks only made as many fabrics, and a rate above the racks was refused."""
    (tmp_path / "nodes.json").write_text(json.dumps(listed(OWN)))
    words = ("place", "import", tmp_path / "nodes.json", "--from", "kube-nodes", "-o", tmp_path / "c.toml")
    words = (*words, "--labels", OWN[0], "--tier-bandwidth")
    apart = commsim(*words, "1=100Gbps").out
    assert "no path joins the 2 switches at the top: 2=2:1 in --tier-bandwidth adds a switch above them" in apart
    wide = [{"job": "a", "gpus": 32, "iter_time_ms": 100, "phases": []}]
    with pytest.raises(InputError, match="2 fabrics that no path joins"):
        place_jobs(tmp_path / "c.toml", wide, n=1)
    joined = commsim(*words, "1=100Gbps,2=2:1").out
    assert "2 switches at the top are joined by one that the file does not name, fabric" in joined
    assert "tier 2: 1 cable of 100Gbps up from each switch" in joined
    assert place_jobs(tmp_path / "c.toml", wide, n=1).candidates[0].stretch == 1
    for kind in ("kueue", "slurm-conf", "volcano"):
        commsim("place", "export", tmp_path / "c.toml", "--to", kind, "-o", tmp_path / kind)
    assert "example.com/rack" in (tmp_path / "kueue").read_text()
    (tmp_path / "jobs.json").write_text(json.dumps(wide))
    commsim("place", tmp_path / "c.toml", tmp_path / "jobs.json", "--json", tmp_path / "p.json")
    placed = ("--to", "kueue-jobs", "--placements", tmp_path / "p.json", "-o", tmp_path / "pods.yaml")
    commsim("place", "export", tmp_path / "c.toml", *placed)
    assert "podset-preferred-topology: example.com/rack" in (tmp_path / "pods.yaml").read_text()
    assert "Switches=leaf[0-1]" in (tmp_path / "slurm-conf").read_text()
    commsim.refuses(*words, "1=100Gbps,3=2:1")


def test_one_node_is_read_and_a_node_that_comes_twice_is_named_with_its_file():
    """``kubectl get node n0 -o json`` prints no list."""
    tree = listed(V1)
    assert read_kube_nodes(json.dumps(tree["items"][0])).gpus == {"n0": 8}
    tree["items"][1]["metadata"]["name"] = "n0"
    with pytest.raises(InputError, match=r"nodes.json: node n0 appears twice"):
        read_kube_nodes(json.dumps(tree))
