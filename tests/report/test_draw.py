import builtins
import struct

import pytest

from commsim.core.errors import InputError
from commsim.report.draw import check_drawable, write_picture
from commsim.report.picture import Disc, Label, Line, Picture, Polygon, Rectangle
from commsim.report.png import MOST_PIXELS, SCALE

pytestmark = pytest.mark.nojit
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
        write_picture(Picture(10, MOST_PIXELS + 1, "", ()), tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["net.pdf", "net", "net.SVG"])
def test_another_suffix_is_refused(name):
    with pytest.raises(InputError, match=r"ends with \.svg or \.png"):
        check_drawable(name)
