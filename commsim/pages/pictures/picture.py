"""A picture: a few kinds of shapes on a sheet, written as SVG or PNG.

Coordinates are in CSS pixels, x to the right and y downwards. The y of a label is the middle of its small letters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]

# Width of an average letter over the size of its font: DejaVu Sans and Verdana, the widest of those asked for.
LETTER = 0.64


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points; `title` is its tooltip."""

    points: tuple[Point, ...]
    colour: str
    width: float = 1.5
    dashed: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class Polygon:
    """A filled polygon."""

    points: tuple[Point, ...]
    fill: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A filled rectangle whose corners may be round; no stroke when its colour is empty."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str = ""
    radius: float = 0.0
    title: str = ""


@dataclass(frozen=True, slots=True)
class Disc:
    """A filled circle."""

    x: float
    y: float
    radius: float
    fill: str
    stroke: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A line of text; with a halo it stays legible on top of lines."""

    x: float
    y: float
    text: str
    size: float = 11.0
    colour: str = "#222222"
    anchor: Anchor = "middle"
    bold: bool = False
    halo: bool = False


Shape = Line | Polygon | Rectangle | Disc | Label


@dataclass(frozen=True, slots=True)
class Picture:
    """Shapes in the order in which they are painted.

    Parameters
    ----------
    width, height : float, pixels
        Size of the sheet.
    title : str
        What it shows, for programs that read pictures aloud.
    shapes : tuple of Shape
        The first ones lie under the later ones.
    """

    width: float
    height: float
    title: str
    shapes: tuple[Shape, ...]


def text_width(text: str, size: float = 11.0) -> float:
    """Width that `text` needs at most, in pixels, unless it consists of capitals."""
    return LETTER * size * len(text)


def shortened(text: str, width: float, size: float = 11.0) -> str:
    """Cut `text` so that it fits in `width` pixels, with an ellipsis where something is missing.

    Parameters
    ----------
    text : str
        One line.
    width, size : float, pixels
        Room, and size of the font.
    """
    fits = max(1, int(width / (LETTER * size)))
    return text if len(text) <= fits else text[: fits - 1] + "…"


def wrapped(texts: Iterable[str], width: float, size: float = 11.0) -> list[str]:
    """Break texts at spaces, and in the middle of long words, so that every line fits in `width` pixels.

    Parameters
    ----------
    texts : iterable of str
        Each begins a line.
    width, size : float, pixels
        Room, and size of the font.
    """
    import textwrap

    fits = max(8, int(width / (LETTER * size)))
    return [line for text in texts for line in textwrap.wrap(text, fits)]
