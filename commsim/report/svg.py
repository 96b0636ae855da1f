"""Write a picture as SVG: one file that needs no font, script or network, with tooltips.

Write a picture to a file whose suffix says how.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from commsim.core.errors import InputError
from commsim.files.whole_files import replacing

from .picture import Disc, Label, Line, Picture, Point, Polygon, Rectangle, Shape
from .png import require_matplotlib, write_png

FONTS = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"


def svg_text(picture: Picture) -> str:
    """Return the SVG document; the same picture always gives the same text."""
    size = f"{_number(picture.width)} {_number(picture.height)}"
    width, height = size.split()
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {size}" '
        f'font-family="{FONTS}" role="img">',
        f"<title>{_text(picture.title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *(_shape(shape) for shape in picture.shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _shape(shape: Shape) -> str:
    if isinstance(shape, Label):
        return _label(shape)
    if isinstance(shape, Line):
        dash = {"stroke-dasharray": "5 4"} if shape.dashed else {}
        attributes = {"points": _points(shape.points), "fill": "none", "stroke": shape.colour, **dash}
        attributes |= {"stroke-width": _number(shape.width), "stroke-linejoin": "round"}
        return _element("polyline", attributes, shape.title)
    if isinstance(shape, Polygon):
        return _element("polygon", {"points": _points(shape.points), "fill": shape.fill}, shape.title)
    if isinstance(shape, Disc):
        centre = {"cx": _number(shape.x), "cy": _number(shape.y), "r": _number(shape.radius)}
        return _element("circle", {**centre, "fill": shape.fill, "stroke": shape.stroke}, shape.title)
    return _rectangle(shape)


def _rectangle(shape: Rectangle) -> str:
    attributes = {"x": _number(shape.x), "y": _number(shape.y)}
    attributes |= {"width": _number(shape.width), "height": _number(shape.height), "fill": shape.fill}
    if shape.radius:
        attributes["rx"] = _number(shape.radius)
    if shape.stroke:
        attributes["stroke"] = shape.stroke
    return _element("rect", attributes, shape.title)


def _label(label: Label) -> str:
    attributes = {"x": _number(label.x), "y": _number(label.y + 0.35 * label.size), "font-size": _number(label.size)}
    attributes |= {"text-anchor": label.anchor, "fill": label.colour}
    if label.bold:
        attributes["font-weight"] = "bold"
    if label.halo:
        attributes |= {"stroke": "#ffffff", "stroke-width": "3", "paint-order": "stroke", "stroke-linejoin": "round"}
    # a label must not catch the mouse: what lies under it has the tooltip
    return f'<text pointer-events="none"{_written(attributes)}>{_text(label.text)}</text>'


def _element(name: str, attributes: dict[str, str], title: str) -> str:
    if not title:
        return f"<{name}{_written(attributes)}/>"
    return f"<{name}{_written(attributes)}><title>{_text(title)}</title></{name}>"


def _written(attributes: dict[str, str]) -> str:
    return "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())


def _text(text: str) -> str:
    """Escape; what XML does not allow at all (control characters) becomes a question mark."""
    return escape("".join(c if c.isprintable() or c == "\n" else "?" for c in text))


def _points(points: tuple[Point, ...]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


SUFFIXES = (".svg", ".png")


def check_drawable(path: str | Path) -> None:
    """Refuse, before anything is computed, a file that a picture cannot be written to.

    Raises
    ------
    InputError
        If the name does not end with .svg or .png, or matplotlib is missing for a PNG.
    """
    if Path(path).suffix not in SUFFIXES:
        raise InputError(f"{path}: a picture is a file that ends with {' or '.join(SUFFIXES)}")
    if Path(path).suffix == ".png":
        require_matplotlib()


def write_picture(picture: Picture, path: str | Path) -> None:
    """Write `picture` as SVG or PNG; the file appears whole or not at all.

    Raises
    ------
    InputError
        As :func:`check_drawable`, or if the file cannot be written.
    """
    check_drawable(path)
    with replacing(path) as out:
        if Path(path).suffix == ".svg":
            out.write(svg_text(picture).encode())
        else:
            write_png(picture, out)
