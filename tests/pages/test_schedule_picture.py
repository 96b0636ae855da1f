import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.pages.palette import COPY, FAINT, HELPER_LANE, REDUCE
from commsim.pages.pictures.paint import svg_text
from commsim.pages.pictures.picture import Disc, Label, Line, Polygon, Rectangle, text_width
from commsim.pages.schedules.schedule_picture import COLUMNS_IN_A_SYSTEM, MAX_TRANSFERS, draw_schedule


def few_chunks(name):
    return {"n_chunks": 3} if "n_chunks" in COLLECTIVES[name].parameters else {}


def arrows(picture):
    """Titles of the tips and plus signs of a picture: what the arrows say."""
    shapes = picture.shapes
    copied = [s.title for s in shapes if isinstance(s, Polygon) and s.title]
    added = [s.title for s in shapes if isinstance(s, Disc) and s.title]
    return copied, added


@pytest.mark.sample(1, each="name")
@pytest.mark.parametrize("n_ranks", [1, 2, 5, 8])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_every_transfer_is_told_by_exactly_one_arrow(name, n_ranks):
    schedule = COLLECTIVES[name].build(n_ranks, **few_chunks(name))
    picture = draw_schedule(schedule)
    ElementTree.fromstring(svg_text(picture))
    copied, added = arrows(picture)
    transfers = schedule.expand()
    assert sum(len(title.splitlines()) for title in copied) == np.count_nonzero(transfers["op"] == 0)
    assert sum(len(title.splitlines()) for title in added) == np.count_nonzero(transfers["op"] == 1)
    assert all("is copied to" in title for title in copied)
    assert all("is added to" in title for title in added)


def test_a_ring_is_one_arrow_per_rank_and_hop():
    copied, added = arrows(draw_schedule(COLLECTIVES["ring_all_reduce"].build(4)))
    assert len(copied) == len(added) == 4 * 3
    assert "hop 0: rank 1 sends chunk 1 of input; it is added to the same of input at rank 2" in added


def test_arrows_go_from_the_lane_of_the_sender_to_that_of_the_receiver():
    p = Program(3, 1)
    p.copy(0, src=0, dst=2)
    picture = draw_schedule(p.build())
    lanes = {s.text: s.y for s in picture.shapes if isinstance(s, Label) and s.text.startswith("rank")}
    shaft = next(s for s in picture.shapes if isinstance(s, Line) and s.title)
    tip = next(s for s in picture.shapes if isinstance(s, Polygon) and s.title)
    assert shaft.points[0][1] == lanes["rank 0"]
    assert tip.points[0][1] == lanes["rank 2"]
    assert shaft.colour == COPY != REDUCE


def test_messages_with_the_same_ends_are_one_arrow_with_all_their_chunks():
    p = Program(2, 8)
    p.copy([0, 1, 2, 5], src=0, dst=1)
    p.copy(4, src=1, dst=0, count=2)
    labels = [s.text for s in draw_schedule(p.build()).shapes if isinstance(s, Label) and s.colour == COPY]
    assert labels == ["0-2,5", "4-5"]


def test_copies_and_reductions_between_the_same_ends_are_two_arrows():
    p = Program(2, 2)
    p.copy(0, src=0, dst=1)
    p.reduce(1, src=0, dst=1)
    copied, added = arrows(draw_schedule(p.build()))
    assert (len(copied), len(added)) == (1, 1)


def test_helpers_have_lanes_of_their_own_colour():
    p = Program(2, 1, n_helpers=1)
    p.reduce(0, src=[0, 1], dst=2)
    shapes = draw_schedule(p.build()).shapes
    assert "helper 0" in [s.text for s in shapes if isinstance(s, Label)]
    assert [s.fill for s in shapes if isinstance(s, Rectangle)].count(HELPER_LANE) == 1


def test_a_fence_is_a_full_line():
    shapes = draw_schedule(COLLECTIVES["binomial_broadcast"].build(8)).shapes
    assert sum(isinstance(s, Line) and s.colour == FAINT and "fence" in s.title for s in shapes) == 2


def test_long_schedules_are_broken_into_systems():
    n_hops = 2 * COLUMNS_IN_A_SYSTEM + 3
    p = Program(2, 1)
    for _ in range(n_hops):
        p.copy(0, src=0, dst=1)
    picture = draw_schedule(p.build())
    names = [s.text for s in picture.shapes if isinstance(s, Label)]
    assert names.count("rank 0") == 3
    assert [name for name in names if name.startswith("hop ")] == [f"hop {i}" for i in range(n_hops)]


@pytest.mark.parametrize("name", ["direct_all_to_all", "halving_doubling_all_reduce", "double_tree_all_reduce"])
@given(n_ranks=st.integers(2, 16))
@settings(max_examples=15)
def test_labels_of_a_hop_do_not_overlap_and_stay_on_the_sheet(name, n_ranks):
    picture = draw_schedule(COLLECTIVES[name].build(n_ranks, **few_chunks(name)))
    chunks = [s for s in picture.shapes if isinstance(s, Label) and s.colour in (COPY, REDUCE)]
    for i, label in enumerate(chunks):
        reach = text_width(label.text, label.size) / 2
        assert label.x - reach >= 0
        assert label.x + reach <= picture.width
        for other in chunks[:i]:
            wide = reach + text_width(other.text, other.size) / 2
            assert abs(label.x - other.x) > wide or abs(label.y - other.y) > label.size


def test_large_schedules_are_refused_with_what_would_help():
    p = Program(2, MAX_TRANSFERS + 1)
    p.copy(np.arange(MAX_TRANSFERS), src=0, dst=1)
    draw_schedule(p.build())
    p.copy(0, src=0, dst=1)
    with pytest.raises(InputError, match=rf"{MAX_TRANSFERS + 1} transfers between 2 participants; at most .* fewer"):
        draw_schedule(p.build("large"))
    with pytest.raises(InputError, match="between 200 participants"):
        draw_schedule(COLLECTIVES["binomial_broadcast"].build(200))
