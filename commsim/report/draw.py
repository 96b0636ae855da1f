"""Write a picture to a file whose suffix says how."""

from __future__ import annotations

from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.formats.files import replacing

from .picture import Picture
from .png import require_matplotlib, write_png
from .svg import svg_text

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
