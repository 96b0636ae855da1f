import builtins
import struct
import xml.etree.ElementTree as ElementTree

import pytest

from commsim.core.errors import InputError
from commsim.pages.pictures.paint import MAX_PIXELS, SCALE, check_drawable, svg_text, write_picture
from commsim.pages.pictures.picture import (
    Disc,
    Label,
    Line,
    Picture,
    Polygon,
    Rectangle,
    shortened,
    text_width,
    wrapped,
)

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


@pytest.mark.parametrize(("wide", "shown"), [(500.0, "500"), (2000.0, "2000"), (3200.0, "2000")])
def test_an_svg_is_shown_at_most_2000_pixels_wide(wide, shown):
    root = ElementTree.fromstring(svg_text(Picture(wide, 800.0, "a", ())))
    assert root.get("width") == shown
    assert root.get("viewBox") == f"0 0 {wide:g} 800"
    assert float(root.get("height")) / 800 == pytest.approx(float(shown) / wide)


def test_text_is_cut_to_its_width():
    assert shortened("leaf0", 100) == "leaf0"
    assert shortened("a very long name", text_width("12345")) == "a ve…"
    assert all(text_width(line) <= 200 for line in wrapped(["word " * 50, "x" * 200], 200))


PICTURE = Picture(
    40,
    20,
    "all shapes",
    (
        Rectangle(0, 0, 40, 20, "#00ff00", "#000000", 3.0),
        Line(((0, 10), (40, 10)), "#ff0000", 2.0, dashed=True),
        Polygon(((0, 0), (5, 0), (0, 5)), "#0000ff"),
        Disc(20, 10, 4, "#ffffff", "#000000"),
        Label(20, 10, "$x_1$ <&>", 8, halo=True),
    ),
)


def test_an_svg_is_written_whole(tmp_path):
    write_picture(PICTURE, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().endswith("</svg>\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_a_png_has_the_size_of_the_picture(tmp_path):
    pytest.importorskip("matplotlib")
    write_picture(PICTURE, tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (40 * SCALE, 20 * SCALE)


def test_both_put_a_rectangle_where_it_is(tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    write_picture(Picture(100, 50, "", (Rectangle(10, 20, 30, 10, "#ff0000"),)), tmp_path / "a.png")
    red = (imread(tmp_path / "a.png")[:, :, :3] == (1, 0, 0)).all(axis=2).nonzero()
    assert (red[0].min(), red[0].max() + 1) == (20 * SCALE, 30 * SCALE)
    assert (red[1].min(), red[1].max() + 1) == (10 * SCALE, 40 * SCALE)


def test_without_matplotlib_one_line_says_what_to_install(tmp_path, monkeypatch):
    known = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return known(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"PNG needs matplotlib: pip install 'commsim\[plot\]', or draw to a .svg"):
        write_picture(PICTURE, tmp_path / "a.png")
    write_picture(PICTURE, tmp_path / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_a_picture_too_large_for_an_image_is_refused(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match=r"too large for PNG .*draw to .svg"):
        write_picture(Picture(10, MAX_PIXELS + 1, "", ()), tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["net.pdf", "net", "net.SVG"])
def test_another_suffix_is_refused(name):
    with pytest.raises(InputError, match=r"ends with \.svg or \.png"):
        check_drawable(name)
