import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.workload.systems.oobleck import even_stages, pipelines_of, recovery_copies, template_sizes

LAYERS = [10.0 * (i + 1) for i in range(12)]


@pytest.mark.parametrize(("fewest", "n_failures"), [(2, 1), (2, 2), (3, 1), (4, 1), (3, 2)])
def test_after_any_tolerated_failures_templates_use_every_node_that_is_left(fewest, n_failures):
    """Some f + 1 templates or more use all nodes as long as there are (f + 1) n0 of them."""
    for n_nodes in range((n_failures + 1) * fewest, 20):
        sizes = template_sizes(n_nodes, fewest, n_failures)
        for left in range((n_failures + 1) * fewest, n_nodes + 1):
            plans = pipelines_of(left, sizes, n_failures + 1)
            assert plans
            assert all(sum(plan) == left and len(plan) > n_failures for plan in plans)


def held(pipelines):
    return {node: layers for nodes in pipelines for node, layers in even_stages(len(LAYERS), nodes).items()}


@given(failed=st.sets(st.sampled_from("abcdefgh"), min_size=1, max_size=2))
@settings(deadline=None, max_examples=60)
def test_recovery_moves_exactly_the_layers_that_nodes_need_and_do_not_hold(failed):
    """Three pipelines outlive two failures; those that are left form two."""
    before = held(["abc", "def", "gh"])
    left = [node for node in "abcdefgh" if node not in failed]
    after = held([left[:3], left[3:]])
    copies = recovery_copies(before, after, LAYERS)
    for node, layers in after.items():
        got = {copy.layer for copy in copies if copy.dst == node}
        assert got == set(layers) - set(before[node])
    for copy in copies:
        assert copy.src not in failed
        assert copy.layer in before[copy.src]
        assert copy.size == LAYERS[copy.layer]


def test_holders_share_the_sending():
    before = {"a": [0, 1], "b": [0, 1], "c": []}
    copies = recovery_copies(before, {"a": [0, 1], "b": [0, 1], "c": [0, 1]}, [5.0, 5.0])
    assert [(copy.src, copy.layer) for copy in copies] == [("a", 0), ("b", 1)]


def test_stages_are_even():
    sizes = [len(layers) for layers in even_stages(26, "abcdefgh").values()]
    assert sum(sizes) == 26
    assert set(sizes) == {3, 4}
    assert list(itertools.chain(*even_stages(7, "abc").values())) == list(range(7))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: template_sizes(5, 3, 1), "to outlive 1 failures takes 2 pipelines of at least 3 nodes, got 5 nodes"),
        (lambda: even_stages(2, "abc"), "has 1..2 nodes, got 3"),
        (lambda: recovery_copies({"a": [0]}, {"b": [0]}, [1.0]), "layer 0 is lost with all nodes that held it"),
    ],
)
def test_what_cannot_be_recovered_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
