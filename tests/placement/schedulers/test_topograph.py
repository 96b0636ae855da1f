import json

import pytest
from fabric_trees import trees
from hypothesis import given, settings

from commsim.core.errors import InputError
from commsim.placement.schedulers.fabric_tree import Switch, Tree
from commsim.placement.schedulers.topograph import (
    read_topograph_graph,
    read_topograph_model,
    write_topograph_graph,
    write_topograph_model,
)

pytestmark = pytest.mark.nojit

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


@settings(deadline=None)
@given(trees())
def test_models_come_back(tree):
    assert same(read_topograph_model(write_topograph_model(tree, ("a comment",)))) == same(tree)


@settings(deadline=None)
@given(trees())
def test_graphs_come_back(tree):
    assert same(read_topograph_graph(write_topograph_graph(tree))) == same(tree)


@pytest.mark.parametrize("text", [MODEL, OLDER])
def test_models_written_by_hand_are_read(text):
    assert same(read_topograph_model(text)) == WANTED


def test_a_graph_names_the_closest_switch_first():
    tree = Tree((Switch("leaf", nodes=("n0",)), Switch("spine", ("leaf",))))
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
        ({"instances": [{"id": "a", "network_layers": ["s"]}] * 2}, "instance a is there twice"),
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
