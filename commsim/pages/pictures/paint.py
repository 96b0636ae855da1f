"""The painters of a picture: SVG that needs no font, script or network, with tooltips; PNG by matplotlib, an extra."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO
from xml.sax.saxutils import escape, quoteattr

from commsim.core.errors import InputError
from commsim.core.extras import needs
from commsim.core.files.whole_files import replacing
from commsim.pages.plots.chart import Chart, write_chart

from .picture import Disc, Label, Line, Picture, Point, Polygon, Rectangle, Shape

# Pixels of the image to a pixel of the picture, unless the image would be too large.
SCALE = 2.0
MAX_PIXELS = 2**15
_ALIGNMENT = {"start": "left", "middle": "center", "end": "right"}
_POINTS = 72.0 / 96.0  # matplotlib counts fonts and widths in points
MOST_SHOWN = 2000  # pixels
FONTS = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
SUFFIXES = (".svg", ".png")


def require_matplotlib(what: str = "PNG needs", otherwise: str = ", or draw to a .svg file") -> None:
    """Refuse before anything is computed.

    Parameters
    ----------
    what, otherwise : str
        Beginning and end of the refusal.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError(needs(f"{what} matplotlib", "plot", otherwise)) from None


def _write_png(picture: Picture, out: BinaryIO) -> None:
    """Draw `picture`.

    Raises
    ------
    InputError
        If the picture is too large for an image.
    """
    scale = min(SCALE, MAX_PIXELS / max(picture.width, picture.height))
    if scale < 1:
        size = f"{picture.width:.0f} x {picture.height:.0f}"
        raise InputError(f"a picture of {size} pixels is too large for PNG (at most {MAX_PIXELS}); draw to .svg")
    matplotlib_figure(picture, 96 * scale).savefig(out, format="png", facecolor="#ffffff")


def matplotlib_figure(picture: Picture, dpi: float = 96.0) -> Any:
    """Draw a picture on a figure of matplotlib, 96 of its pixels to an inch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(picture.width / 96, picture.height / 96), dpi=dpi)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, picture.width)
    axes.set_ylim(picture.height, 0)
    for order, shape in enumerate(picture.shapes):
        _draw(axes, shape, order)
    return figure


def _draw(axes: Any, shape: Shape, order: int) -> None:
    from matplotlib import patches

    if isinstance(shape, Label):
        _write(axes, shape, order)
        return
    if isinstance(shape, Line):
        x, y = zip(*shape.points, strict=True)
        dashes = {"dashes": (5 / shape.width, 4 / shape.width)} if shape.dashed else {}
        axes.plot(x, y, color=shape.colour, linewidth=shape.width * _POINTS, zorder=order, **dashes)
        return
    look: dict[str, Any] = {"facecolor": shape.fill, "zorder": order, "linewidth": _POINTS}
    look["edgecolor"] = "none" if isinstance(shape, Polygon) else shape.stroke or "none"
    if isinstance(shape, Polygon):
        axes.add_patch(patches.Polygon(shape.points, **look))
    elif isinstance(shape, Disc):
        axes.add_patch(patches.Circle((shape.x, shape.y), shape.radius, **look))
    else:
        style = f"round,pad=0,rounding_size={shape.radius}" if shape.radius else "square,pad=0"
        axes.add_patch(patches.FancyBboxPatch((shape.x, shape.y), shape.width, shape.height, boxstyle=style, **look))


def _write(axes: Any, label: Label, order: int) -> None:
    from matplotlib.patheffects import withStroke

    axes.text(
        label.x, label.y + 0.35 * label.size, label.text, fontsize=label.size * _POINTS, color=label.colour,
        horizontalalignment=_ALIGNMENT[label.anchor], verticalalignment="baseline", zorder=order, parse_math=False,
        fontweight="bold" if label.bold else "normal",
        path_effects=[withStroke(linewidth=3 * _POINTS, foreground="#ffffff")] if label.halo else [],
    )  # fmt: skip


def svg_text(picture: Picture) -> str:
    """Return the SVG document; the same picture always gives the same text.

    It is shown at most ``MOST_SHOWN`` wide: what is wider is shown smaller, and can be magnified.
    """
    width, height = _number(picture.width), _number(picture.height)
    shown = min(1.0, MOST_SHOWN / picture.width)
    as_shown = f'width="{_number(shown * picture.width)}" height="{_number(shown * picture.height)}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" {as_shown} viewBox="0 0 {width} {height}" '
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
    return f'<text pointer-events="none"{_attributes_text(attributes)}>{_text(label.text)}</text>'


def _element(name: str, attributes: dict[str, str], title: str) -> str:
    if not title:
        return f"<{name}{_attributes_text(attributes)}/>"
    return f"<{name}{_attributes_text(attributes)}><title>{_text(title)}</title></{name}>"


def _attributes_text(attributes: dict[str, str]) -> str:
    return "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())


def _text(text: str) -> str:
    """Escape; what XML does not allow at all (control characters) becomes a question mark."""
    return escape("".join(c if c.isprintable() or c == "\n" else "?" for c in text))


def _points(points: tuple[Point, ...]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


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


def check_chart(path: str | Path) -> None:
    """Refuse, before anything is computed, a file that a chart cannot be written to.

    Raises
    ------
    InputError
        If the name does not end with .svg, .png or .pdf, or matplotlib is missing, whatever the format.
    """
    if Path(path).suffix not in (*SUFFIXES, ".pdf"):
        raise InputError(f"{path}: a chart is a file that ends with {', '.join(SUFFIXES)} or .pdf")
    require_matplotlib("charts need", "")


def write_picture(picture: Picture | Chart, path: str | Path) -> None:
    """Write a picture or a chart as SVG or PNG; the file appears whole or not at all.

    Raises
    ------
    InputError
        As :func:`check_drawable` or :func:`check_chart`, or if the file cannot be written.
    """
    kind = Path(path).suffix[1:]
    if isinstance(picture, Chart):
        check_chart(path)
        with replacing(path) as out:
            write_chart(picture, out, kind)
        return
    check_drawable(path)
    with replacing(path) as out:
        if kind == "svg":
            out.write(svg_text(picture).encode())
        else:
            _write_png(picture, out)
