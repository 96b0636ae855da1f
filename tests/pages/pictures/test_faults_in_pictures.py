"""Dead and slower cables are marked in a picture, and machines whose parts would be too wide are boxes."""

import numpy as np
import pytest

from commsim.core.faults.failures import fail_links, fail_switches
from commsim.core.faults.scaling import scale_links
from commsim.pages.palette import FAULT
from commsim.pages.pictures.boxes import MAX_WIDTH, make_boxes, make_bundles
from commsim.pages.pictures.network_picture import draw_network
from commsim.pages.pictures.picture import Label, Line
from commsim.prediction.inputs import load_network

FABRIC = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4,uplinks_per_spine=2"


def marked(network, whole):
    """Return the texts of labels, and the lines, that mark a fault."""
    shapes = draw_network(network, whole=whole)[0].shapes
    labels = [s.text for s in shapes if isinstance(s, Label) and s.colour == FAULT]
    return sorted(labels), [s for s in shapes if isinstance(s, Line) and s.colour == FAULT]


def test_a_cable_that_is_dead_is_drawn_and_labelled_whether_others_beside_it_are_left_or_not():
    whole = load_network(FABRIC)
    one = fail_links(whole, ["leaf0:spine0"])
    both = fail_links(one, ["leaf0:spine0"])
    assert marked(one, whole)[0] == ["1 of 2 dead"]
    assert marked(both, whole)[0] == ["dead"]
    assert [line.dashed for line in marked(both, whole)[1]] == [True, True]  # and in the legend
    assert marked(both, None) == marked(whole, whole) == ([], [])


def test_slower_cables_are_labelled_with_their_rate():
    whole = load_network(FABRIC)
    one = scale_links(whole, 0.25, pattern="leaf1:spine1")
    every = scale_links(whole, 0.5, pattern="leaf1:spine1*")
    assert marked(one, whole)[0] == ["1 of 2: 25 Gb/s"]
    labels, lines = marked(every, whole)
    assert labels == ["50 Gb/s"]
    assert not any(line.dashed for line in lines)


def test_all_cables_of_a_switch_that_failed_are_dead():
    whole = load_network(FABRIC.removesuffix(",uplinks_per_spine=2"))
    assert marked(fail_switches(whole, ["spine0"]), whole)[0] == ["dead"] * 4


def test_links_that_are_left_are_counted_as_without_the_whole_network():
    whole = load_network(FABRIC)
    network = scale_links(fail_links(whole, ["leaf0:spine0", "leaf2:spine1"]), 0.5, pattern="leaf3:spine1")
    boxes = make_boxes(network)
    with_whole = make_bundles(network, boxes.of_node, boxes.row, None, whole)
    alone = make_bundles(network, boxes.of_node, boxes.row, None)
    for name in ("low", "high", "up", "down", "rate"):
        assert np.array_equal(getattr(with_whole, name), getattr(alone, name)), name
    assert (with_whole.dead.sum(), with_whole.slow.sum()) == (2, 1)
    assert not alone.dead.any()
    assert not alone.slow.any()


@pytest.mark.parametrize("machines", [1, 4])
def test_parts_of_machines_are_drawn_where_they_fit(machines):
    network = load_network(f"dgx-h100@star:machines={machines}" if machines > 1 else "dgx-h100")
    picture, notes = draw_network(network)
    assert picture.width <= MAX_WIDTH
    assert bool(notes) == (machines > 1)
    assert draw_network(network, collapse=False)[0].width > (MAX_WIDTH if machines > 1 else 0)
