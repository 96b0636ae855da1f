"""Figures of pages: a table and its roles as a specification of Vega-Lite, one function for each kind of figure.

A browser filters, sums up and draws; columns are named ``f0``, ``f1`` and so on, so that no name of a user's is ever
part of an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from commsim.pages.figure import Figure

from .fields import HEIGHT, Spec, SpecFields
from .lanes import spans
from .lines import cdf, curves, scatter
from .maps import choice, heat, of_parts

KINDS: Mapping[str, Callable[[SpecFields], Spec]] = {
    "curves": curves, "cdf": cdf, "scatter": scatter, "heat": heat, "choice": choice, "spans": spans,
}  # fmt: skip


def spec_of(figure: Figure) -> Spec:
    """Return the specification of a figure; its data are named ``rows``, measured points ``points``.

    Parameters
    ----------
    figure : Figure
        Of any kind but pictures.
    """
    common: Spec = {"width": "container", "height": HEIGHT, "data": {"name": "rows"}, "description": figure.title}
    spec = common | KINDS[figure.kind](SpecFields(figure))
    told: dict[str, list[Spec]] = {}
    _take_tooltips(spec, told)
    return spec | {"usermeta": {"told": told}}


def _take_tooltips(spec: Spec, tooltips: dict[str, list[Spec]]) -> None:
    """Take the lines of tooltips out of layers, by the names of these: texts are made for what the mouse is on only."""
    for layer in spec.get("layer", ()):
        if lines := layer.get("encoding", {}).pop("tooltip", None):
            tooltips[layer.setdefault("name", f"told{len(tooltips)}")] = lines
            layer["mark"]["tooltip"] = {"content": "data"}
        _take_tooltips(layer, tooltips)


def zoomed_field(figure: Figure) -> str:
    """Name of the field along the axis that can be zoomed; empty where none can."""
    zooms = figure.kind in ("curves", "cdf", "scatter", "spans") or (
        figure.kind == "heat" and of_parts(SpecFields(figure))
    )
    return SpecFields(figure).of("x") if zooms else ""
