import dataclasses
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network
from commsim.core.result import Result
from commsim.core.units import format_bandwidth
from commsim.pages.palette import BOX_HEIGHT, IDLE, LINK, load_colour
from commsim.pages.pictures.boxes import MAX_ENDPOINTS, make_boxes, make_bundles
from commsim.pages.pictures.layout import make_layout, spread
from commsim.pages.pictures.network_picture import draw_network, full_load
from commsim.pages.pictures.paint import svg_text
from commsim.pages.pictures.picture import Label, Line, Rectangle, text_width
from commsim.prediction.inputs import load_network

NETWORKS = [
    "star:n_hosts=2",
    "star:n_hosts=40",
    "ring:n_hosts=3",
    "ring:n_hosts=17",
    "fully_connected:n_hosts=9",
    "leaf_spine:n_leaves=4,n_spines=3,hosts_per_leaf=5,uplinks_per_spine=2",
    "leaf_spine:n_leaves=100,n_spines=64,hosts_per_leaf=16",
    "fat_tree:k=4",
    "fat_tree:k=16",
    "three_tier:n_pods=3,racks_per_pod=2,hosts_per_rack=4,switches_per_pod=2,n_cores=2",
    "torus:dims=4x4",
    "torus:dims=3x4x5",
    "torus:dims=2x2x2x2",
    "hypercube:dimension=6",
    "dragonfly:p=2,a=4,h=2",
    "jellyfish:n_switches=12,degree=3,hosts_per_switch=2",
    "bcube:n=4,k=1",
    "dgx-h100",
    "rail_optimized:n_hosts=2",
    "rail_optimized:n_hosts=64",
]


def sheets(network, **options):
    """Boxes of a picture: the rectangles that have a tooltip."""
    picture, _ = draw_network(network, **options)
    return picture, [s for s in picture.shapes if isinstance(s, Rectangle) and s.title]


def result_on(network, link_bytes, time=1.0):
    return Result("ring_all_reduce", "all_reduce", "flow", 2, 1e6, time, time, link_bytes)


@pytest.mark.sample(20)
@pytest.mark.parametrize("collapse", [None, True, False])
@pytest.mark.parametrize("text", NETWORKS)
def test_boxes_lie_on_the_sheet_and_do_not_overlap(text, collapse):
    picture, found = sheets(load_network(text), collapse=collapse)
    edges = np.array([(s.x, s.y, s.x + s.width, s.y + s.height) for s in found])
    assert (edges[:, :2] >= 0).all()
    assert (edges[:, 2:] <= (picture.width, picture.height)).all()
    for i, (left, top, right, bottom) in enumerate(edges):
        others = np.delete(edges, i, axis=0)
        apart = (others[:, 0] >= right) | (others[:, 2] <= left) | (others[:, 1] >= bottom) | (others[:, 3] <= top)
        assert apart.all(), (text, found[i].title)


@pytest.mark.parametrize("text", NETWORKS)
def test_the_svg_is_valid_and_every_label_is_on_the_sheet(text):
    picture, _ = draw_network(load_network(text))
    ElementTree.fromstring(svg_text(picture))
    for label in (s for s in picture.shapes if isinstance(s, Label)):
        width = text_width(label.text, label.size)
        left = label.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[label.anchor] * width
        assert left >= 0
        assert left + width <= picture.width + 1
        assert label.size <= label.y <= picture.height


@pytest.mark.parametrize("text", NETWORKS)
def test_every_node_is_in_a_box_and_every_link_in_one_bundle_or_inside_a_box(text):
    network = load_network(text)
    boxes = make_boxes(network)
    assert np.bincount(boxes.of_node, minlength=len(boxes.row)).min() >= 1
    assert len(boxes.label) == len(boxes.title) == len(boxes.row) == len(boxes.kind)
    bundles = make_bundles(network, boxes.of_node, boxes.row, None)
    inside = np.count_nonzero(boxes.of_node[network.src] == boxes.of_node[network.dst])
    assert bundles.up.sum() + bundles.down.sum() + inside == network.n_links


def test_few_hosts_are_drawn_one_by_one_and_many_as_one_box_per_switch():
    few = make_boxes(load_network("leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=16"))
    assert len(few.row) == MAX_ENDPOINTS + 5
    assert few.notes == ()
    many = make_boxes(load_network("leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=17"))
    assert many.label == ("17 hosts",) * 3 + ("leaf0", "leaf1", "leaf2", "spine0", "spine1")
    assert many.title[1] == "17 hosts: h17 … h33"
    assert many.notes == (f"collapsed, since there are more than {MAX_ENDPOINTS} hosts",)


def test_what_the_reader_asks_for_is_done():
    network = load_network("leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4")
    assert make_boxes(network, True).label == ("4 hosts", "4 hosts", "leaf0", "leaf1", "spine0")
    large = load_network("star:n_hosts=60")
    assert len(make_boxes(large, False).row) == 61
    assert len(make_boxes(large).row) == 2


def test_machines_become_boxes_and_then_those_on_the_same_leaves():
    boxes = make_boxes(load_network("rail_optimized:n_hosts=4,hosts_per_group=2"), True)
    assert boxes.label[:2] == ("2 machines", "2 machines")
    assert boxes.title[0] == "2 machines: m0 … m1"
    one = make_boxes(load_network("rail_optimized:n_hosts=2,hosts_per_group=1"), True)
    assert one.label[0] == "m0"
    assert "8 GPUs" in one.title[0]


def test_of_long_rows_the_middle_is_one_box():
    boxes = make_boxes(load_network("leaf_spine:n_leaves=100,n_spines=2,hosts_per_leaf=4"))
    assert boxes.label.count("76 more") == 1
    assert boxes.label.count("304 more") == 1
    assert np.bincount(boxes.row).tolist() == [25, 25, 2]
    assert len(boxes.notes) == 2


def test_a_link_has_the_colours_of_its_loads():
    network = load_network("star:n_hosts=2,bandwidth=1GB/s")  # h0:s, h1:s, s:h0, s:h1
    picture, _ = draw_network(network, result_on(network, np.array([1e9, 0.0, 0.0, 0.5e9])))
    lines = [s for s in picture.shapes if isinstance(s, Line) and s.title]
    sends = {}
    for name in ("h0", "h1"):
        lower, upper = sorted(
            (s for s in lines if s.title.startswith(name)), key=lambda s: -max(y for _, y in s.points)
        )
        sends[name] = lower.colour, upper.colour  # of the host, and of the switch to it
    assert sends == {"h0": (load_colour(1.0), IDLE), "h1": (IDLE, load_colour(0.5))}
    titles = {line.title for line in picture.shapes if isinstance(line, Line) and line.title}
    busiest = "busiest: h0 sends 100.0%, switch0 sends 0.0% of capacity"
    assert f"h0 to switch0\n1 link each way, 8 Gb/s (1 GB/s)\n{busiest}" in titles


def test_without_loads_links_are_grey():
    picture, _ = draw_network(load_network("star:n_hosts=2"))
    assert {s.colour for s in picture.shapes if isinstance(s, Line)} == {LINK}


def test_the_busiest_link_of_a_bundle_decides():
    network = load_network("star:n_hosts=50,bandwidth=1GB/s")
    link_bytes = np.zeros(network.n_links)
    link_bytes[17] = 0.7e9
    boxes = make_boxes(network)
    bundles = make_bundles(network, boxes.of_node, boxes.row, link_bytes / 1e9)
    assert (bundles.up.tolist(), bundles.load_up.tolist(), bundles.load_down.tolist()) == ([50], [0.7], [0.0])


def test_loads_of_another_network_are_refused():
    network = load_network("star:n_hosts=4")
    with pytest.raises(InputError, match=r"loads of 6 links, but star:n_hosts=4.* has 8 links"):
        draw_network(network, result_on(network, np.zeros(6)))
    with pytest.raises(InputError, match="loads of no links"):
        draw_network(network, result_on(network, np.zeros(0)))


def test_a_result_that_took_no_time_has_no_loads():
    network = load_network("star:n_hosts=1")
    loaded, _ = draw_network(network, result_on(network, np.zeros(2), 0.0))
    assert svg_text(loaded).count("nan") == 0
    assert svg_text(loaded).count("inf") == 0


def test_a_network_with_parts_that_nothing_joins_is_drawn():
    alone = Network("alone & <none>", ["a", "b", "lost"], [HOST, HOST, SWITCH], [], [], [], [])
    picture, found = sheets(alone)
    assert len(found) == 3
    ElementTree.fromstring(svg_text(picture))


def test_parallel_cables_are_lines_while_few_and_a_number_when_many():
    def drawn(cables):
        network = load_network(f"leaf_spine:n_leaves=1,n_spines=1,hosts_per_leaf=1,uplinks_per_spine={cables}")
        shapes = draw_network(network)[0].shapes
        lines = sum(isinstance(s, Line) and s.title.startswith("leaf0") for s in shapes)
        return lines, [s.text for s in shapes if isinstance(s, Label) and s.text.endswith("x")]

    assert [drawn(cables) for cables in (1, 2, 3, 4, 64)] == [(1, []), (2, []), (3, []), (1, ["4x"]), (1, ["64x"])]


@pytest.mark.parametrize(
    ("network", "machines"), [("rail_optimized:machines=16,preset=dgx-h100", "16x"),
                              ("dgx-h100@leaf_spine:machines=16,n_leaves=4,n_spines=4", "32x")],
)  # fmt: skip
def test_cables_of_machines_that_are_one_box_are_counted_in_every_fabric(network, machines):
    written = [s.text for s in draw_network(load_network(network))[0].shapes if isinstance(s, Label)]
    assert machines in written
    assert "(effective rates)" in written


def test_a_torus_stands_on_its_grid_and_a_jellyfish_on_a_circle():
    def layout(text):
        network = load_network(text)
        boxes = make_boxes(network)
        return make_layout(network, boxes, make_bundles(network, boxes.of_node, boxes.row, None))

    grid = layout("torus:dims=3x5")
    assert grid.shape == "grid"
    assert (len(np.unique(grid.x.round(6))), len(np.unique(grid.y.round(6)))) == (5, 3)
    assert layout("jellyfish:n_switches=8,degree=3,hosts_per_switch=1").shape == "circle"
    assert layout("fat_tree:k=4").shape == "rows"


def test_rows_are_tiers_from_the_bottom_up():
    network = load_network("fat_tree:k=4")
    boxes = make_boxes(network)
    at = make_layout(network, boxes, make_bundles(network, boxes.of_node, boxes.row, None))
    heights = [np.unique(at.y[boxes.row == row]) for row in range(4)]
    assert all(len(h) == 1 for h in heights)
    assert (np.diff(np.concatenate(heights)) < -2 * BOX_HEIGHT).all()


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=30).map(sorted), st.floats(1, 30), st.floats(-50, 0))
def test_spread_keeps_its_distances_and_bounds_and_moves_nothing_without_need(wanted, spacing, low):
    wanted = np.array(wanted)
    high = low + spacing * (len(wanted) - 1) + 1100
    got = spread(wanted, spacing, low, high)
    assert (np.diff(got) >= spacing - 1e-9).all()
    assert low - 1e-9 <= got[0]
    assert got[-1] <= high + 1e-9
    if (np.diff(wanted) >= spacing).all():
        np.testing.assert_allclose(got, wanted, atol=1e-9)


def test_spread_is_the_nearest_in_the_least_squares_sense():
    got = spread(np.array([0.0, 0.0, 0.0, 100.0]), 10.0, -1000, 1000)
    np.testing.assert_allclose(got, [-10, 0, 10, 100])


def test_colours_rise_to_the_next_round_load():
    pairs = {0.0: 0.01, 0.004: 0.01, 0.01: 0.01, 0.03: 0.05, 0.5: 0.5, 0.51: 1.0, 1.0: 1.0}
    assert {load: full_load(load) for load in pairs} == pairs
    assert load_colour(0.0) == IDLE
    assert load_colour(0.1) != load_colour(0.2)
    assert load_colour(2.0) == load_colour(1.0)


def test_a_large_network_is_drawn_quickly_and_small():
    picture, notes = draw_network(load_network("fat_tree:k=32"))
    assert len(picture.shapes) < 1500
    assert len(notes) == 2


def test_the_same_network_gives_the_same_picture():
    network = load_network("dragonfly:p=2,a=4,h=2")
    assert draw_network(network) == draw_network(dataclasses.replace(network))


@pytest.mark.parametrize("text", ["dgx-h100", "dgx-a100", "dgx-h100@star:machines=2"])
def test_the_legend_names_the_rates_of_all_lines_that_are_drawn(text):
    network = load_network(text)
    drawn = draw_network(network)[0]
    written = [shape.text for shape in drawn.shapes if isinstance(shape, Label)]
    boxes = make_boxes(network)
    rates = np.unique(make_bundles(network, boxes.of_node, boxes.row, None).rate)
    assert len(rates) > 4
    for rate in rates:
        assert format_bandwidth(float(rate)).split(" (")[0] in written


def test_switches_keep_their_order_where_a_link_has_failed():
    from commsim import with_faults

    network = with_faults("leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4", fail=["link:leaf0:spine0"])
    labels = {one.text: one.x for one in draw_network(network)[0].shapes if isinstance(one, Label)}
    assert labels["spine0"] < labels["spine1"]
