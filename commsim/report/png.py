"""Draw a picture as PNG with matplotlib, an extra: the same shapes at the same places as in SVG."""

from __future__ import annotations

from typing import Any, BinaryIO

from commsim.core.errors import InputError

from .picture import Disc, Label, Line, Picture, Polygon, Shape

SCALE = 2.0
"""Pixels of the image to a pixel of the picture, unless the image would be too large."""
MAX_PIXELS = 2**15
_ALIGNMENT = {"start": "left", "middle": "center", "end": "right"}
_POINTS = 72.0 / 96.0  # matplotlib counts fonts and widths in points


def require_matplotlib() -> None:
    """Refuse before anything is computed.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError("PNG needs matplotlib: pip install 'commsim[plot]', or draw to a .svg file") from None


def write_png(picture: Picture, out: BinaryIO) -> None:
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
