import json

import pytest
import yaml
from fabric_trees import trees
from hypothesis import given

from commsim.core.errors import InputError
from commsim.placement.schedulers.fabric_tree import Switch, SwitchTree
from commsim.placement.schedulers.kubernetes import (
    read_topograph_graph,
    read_topograph_model,
    write_kueue,
    write_topograph_graph,
    write_topograph_model,
    write_volcano,
)

TREE = SwitchTree(
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
    tree = SwitchTree((Switch("s", nodes=(name,)),))
    for write in (write_volcano, write_kueue):
        with pytest.raises(InputError, match="is not a name of a Kubernetes node"):
            write(tree)


def test_switches_that_would_be_one_in_kubernetes_are_refused():
    with pytest.raises(InputError, match="are both 'leaf-0'"):
        write_volcano(SwitchTree((Switch("leaf_0", nodes=("a",)), Switch("leaf-0", nodes=("b",)))))


def test_nodes_at_different_depths_are_refused_for_kueue():
    tree = SwitchTree((Switch("a", nodes=("n0",)), Switch("t", ("a",), ("n1",))))
    with pytest.raises(InputError, match="equally many switches"):
        write_kueue(tree)


def test_a_switch_too_long_for_a_label_is_refused():
    with pytest.raises(InputError, match="at most 63 characters"):
        write_kueue(SwitchTree((Switch("s" * 64, nodes=("n0",)),)))


MODEL = """
switches:
  S1: {labels: {zone: a}, switches: [S2, S3]}
  S3: {}
blocks:
- switch: S2
  nodes: ["I[21-22]", I25]
  annotations: {domain: nvl2}
- {switch: S3, nodes: ["I[34-35]"]}
"""
OLDER = """
switches:
  S1: {switches: [S2, S3]}
  S2: {nodes: ["I[21-22]", I25]}
  S3: {nodes: ["I[34-35]"]}
nodes:
  I21: {type: H100}
capacity_blocks: {}
"""


def same(tree):
    return {(s.name, frozenset(s.switches), s.nodes) for s in tree.switches}


WANTED = {
    ("S1", frozenset(("S2", "S3")), ()),
    ("S2", frozenset(), ("I21", "I22", "I25")),
    ("S3", frozenset(), ("I34", "I35")),
}


@given(trees())
def test_models_come_back(tree):
    assert same(read_topograph_model(write_topograph_model(tree, ("a comment",)))) == same(tree)


@given(trees())
def test_graphs_come_back(tree):
    assert same(read_topograph_graph(write_topograph_graph(tree))) == same(tree)


@pytest.mark.parametrize("text", [MODEL, OLDER])
def test_models_written_by_hand_are_read(text):
    assert same(read_topograph_model(text)) == WANTED


def test_a_graph_names_the_closest_switch_first():
    tree = SwitchTree((Switch("leaf", nodes=("n0",)), Switch("spine", ("leaf",))))
    assert json.loads(write_topograph_graph(tree)) == {"instances": [{"id": "n0", "network_layers": ["leaf", "spine"]}]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected a mapping"),
        ("switches: 3", "switches must be a table"),
        ("switches: {a: {switches: x}}", r"switches.a.switches must be a list"),
        ("blocks: [{nodes: [a]}]", r"blocks\[0\].switch is missing"),
        ("switches: {a: {nodes: [n]}, b: {nodes: [n]}}", "node n is below a and below b"),
    ],
)
def test_what_is_wrong_in_a_model_is_named(text, message):
    with pytest.raises(InputError, match=message):
        read_topograph_model(text, "f")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([], "expected a table"),
        ({}, "instances is missing"),
        ({"instances": [{"id": "a"}]}, r"instances\[0\].network_layers is missing"),
        ({"instances": [{"id": "a", "network_layers": []}]}, "the closest first"),
        ({"instances": [{"id": "a", "network_layers": ["s"]}] * 2}, "instance a appears twice"),
        ({"instances": [{"id": "a", "network_layers": ["s", "t"]}, {"id": "b", "network_layers": ["s", "u"]}]},
         "switch s is below t and below u"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_graph_is_named(tree, message):
    with pytest.raises(InputError, match=message):
        read_topograph_graph(json.dumps(tree), "f")


@pytest.mark.parametrize("text", ["{", '{"instances": NaN}', "[" * 100_000])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(InputError, match="f: "):
        read_topograph_graph(text, "f")
