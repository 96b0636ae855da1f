import xml.etree.ElementTree as ElementTree

import pytest

from commsim.report.picture import Disc, Label, Line, Picture, Polygon, Rectangle, shortened, text_width, wrapped
from commsim.report.svg import svg_text

pytestmark = pytest.mark.nojit
SVG = "{http://www.w3.org/2000/svg}"
SHAPES = (
    Line(((0, 0), (1.23456, 2)), "#000000", 1.5, dashed=True, title="a line"),
    Polygon(((0, 0), (1, 0), (0, 1)), "#123456"),
    Rectangle(1, 2, 3, 4, "#ffffff", "#000000", 2.0, "a box"),
    Disc(5, 5, 2, "#ffffff", "#000000"),
    Label(1, 2, "text", 10, bold=True, halo=True),
)


def test_every_shape_becomes_one_element_in_the_order_of_painting():
    root = ElementTree.fromstring(svg_text(Picture(10, 20, "what", SHAPES)))
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("10", "20", "0 0 10 20")
    tags = [element.tag.removeprefix(SVG) for element in root]
    assert tags == ["title", "rect", "polyline", "polygon", "rect", "circle", "text"]
    assert root[2].get("points") == "0,0 1.23,2"
    assert [element.findtext(f"{SVG}title") for element in root[2:]] == ["a line", None, "a box", None, None]


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "a & b", "\"quoted\" 'too'", "]]>", "ünïcode…"])
def test_text_is_escaped_and_reads_back_as_it_was(text):
    picture = Picture(1, 1, text, (Label(0, 0, text), Disc(0, 0, 1, "#fff", "#000", title=text)))
    root = ElementTree.fromstring(svg_text(picture))
    assert root.findtext(f"{SVG}title") == text
    assert root.findtext(f"{SVG}text") == text
    assert root.findtext(f"{SVG}circle/{SVG}title") == text
    assert not list(root.iter(f"{SVG}script"))


def test_what_xml_forbids_becomes_a_question_mark():
    root = ElementTree.fromstring(svg_text(Picture(1, 1, "a\x00b\x1b\ud800", ())))
    assert root.findtext(f"{SVG}title") == "a?b??"


def test_a_picture_needs_nothing_from_elsewhere():
    text = svg_text(Picture(10, 20, "what", SHAPES))
    assert text.count("http") == 1  # the namespace
    assert "href" not in text
    assert "@import" not in text


def test_text_is_cut_to_its_width():
    assert shortened("leaf0", 100) == "leaf0"
    assert shortened("a very long name", text_width("12345")) == "a ve…"
    assert all(text_width(line) <= 200 for line in wrapped(["word " * 50, "x" * 200], 200))
