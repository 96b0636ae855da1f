import pytest
import yaml

from commsim.core.errors import InputError
from commsim.placement.schedulers.fabric_tree import Switch, Tree
from commsim.placement.schedulers.kubernetes import write_kueue, write_volcano

pytestmark = pytest.mark.nojit

TREE = Tree(
    (Switch("Leaf_0", nodes=("n0", "n1")), Switch("leaf1", nodes=("n2",)), Switch("SPINE", ("Leaf_0", "leaf1")))
)


def test_every_switch_is_a_hypernode_of_its_tier():
    documents = list(yaml.safe_load_all(write_volcano(TREE, ("a comment",))))
    assert [(d["metadata"]["name"], d["spec"]["tier"]) for d in documents] == [
        ("leaf-0", 1),
        ("leaf1", 1),
        ("spine", 2),
    ]
    assert {(d["apiVersion"], d["kind"]) for d in documents} == {("topology.volcano.sh/v1alpha1", "HyperNode")}
    assert documents[2]["spec"]["members"] == [
        {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}} for name in ("leaf-0", "leaf1")
    ]
    assert documents[1]["spec"]["members"] == [{"type": "Node", "selector": {"exactMatch": {"name": "n2"}}}]


def test_kueue_gets_levels_from_far_to_near_and_the_labels_that_they_need():
    text = write_kueue(TREE)
    document = yaml.safe_load(text)
    assert (document["apiVersion"], document["kind"]) == ("kueue.x-k8s.io/v1beta2", "Topology")
    assert [level["nodeLabel"] for level in document["spec"]["levels"]] == [
        "fabric.topograph.run/tier-1", "fabric.topograph.run/tier-0", "kubernetes.io/hostname",
    ]  # fmt: skip
    assert "# kubectl label node n2 fabric.topograph.run/tier-0=leaf1 fabric.topograph.run/tier-1=SPINE" in text


@pytest.mark.parametrize("name", ["N0", "n_0", "-n", "n" * 254])
def test_nodes_that_kubernetes_cannot_have_are_refused(name):
    tree = Tree((Switch("s", nodes=(name,)),))
    for write in (write_volcano, write_kueue):
        with pytest.raises(InputError, match="is not a name of a Kubernetes node"):
            write(tree)


def test_switches_that_would_be_one_in_kubernetes_are_refused():
    with pytest.raises(InputError, match="are both 'leaf-0'"):
        write_volcano(Tree((Switch("leaf_0", nodes=("a",)), Switch("leaf-0", nodes=("b",)))))


def test_nodes_at_different_depths_are_refused_for_kueue():
    tree = Tree((Switch("a", nodes=("n0",)), Switch("t", ("a",), ("n1",))))
    with pytest.raises(InputError, match="equally many switches"):
        write_kueue(tree)


def test_a_switch_too_long_for_a_label_is_refused():
    with pytest.raises(InputError, match="at most 63 characters"):
        write_kueue(Tree((Switch("s" * 64, nodes=("n0",)),)))
