"""The look of figures on pages, light and dark, as configurations of Vega-Lite."""

from __future__ import annotations

from typing import Any

from commsim.pages.palette import CHART, DARK_CHART, RATIO_RAMP

FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
HEIGHT = 250
# Room of half of the last name of an axis is on the right.
PADDING = {"left": 4, "top": 8, "right": 26, "bottom": 4}
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")


def themes() -> dict[str, Any]:
    """Return a configuration for light pages, and one for dark pages."""
    return {"light": _theme(CHART), "dark": _theme(DARK_CHART)}


def _theme(look: dict[str, Any]) -> dict[str, Any]:
    words = {"labelColor": look["faint"], "titleColor": look["ink"], "titleFontWeight": "normal"}
    axis = {"gridColor": look["grid"], "domainColor": look["faint"], "tickColor": look["faint"], "titlePadding": 8}
    return {
        "background": look["paper"], "padding": PADDING, "font": FONT, "customFormatTypes": True,
        "view": {"stroke": None},
        "axis": words | axis | {"labelFontSize": 11, "titleFontSize": 12, "titleLimit": HEIGHT},
        "axisX": {"titleLimit": {"expr": "0.7 * containerSize()[0]"}},
        "legend": words | {"orient": "bottom", "labelColor": look["ink"], "labelFontSize": 11, "labelLimit": 210,
                           "titleFontSize": 12, "symbolSize": 90, "symbolLimit": 60, "columnPadding": 14},
        "range": {"category": look["series"], "heatmap": _colours(look["load"]), "diverging": _colours(RATIO_RAMP),
                  "symbol": SHAPES},
        "mark": {"color": look["series"][0]},
        "params": [{"name": name, "value": look[name]} for name in ("ink", "paper", "idle", "band")],
    }  # fmt: skip


def _colours(ramp: tuple[tuple[int, int, int], ...]) -> list[str]:
    return [f"rgb({r},{g},{b})" for r, g, b in ramp]
