"""Charts of one's own numbers, for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

from commsim.core.errors import InputError, wrong_kind
from commsim.pages.plots.chart import Chart, ChartAxis, Series, draw_bars, draw_chart

# Most values of x that get a tick each.
MAX_TICKS = 12


def line_chart(
    title: str,
    x: str,
    y: str,
    lines: Mapping[str, Mapping[float, float]],
    *,
    logarithmic: str = "",
    dashed: Collection[str] = (),
) -> Chart:
    """Make a chart of lines, which shows itself in a notebook.

    Parameters
    ----------
    title : str
        Title above the chart.
    x, y : str
        Labels of the axes, with their units.
    lines : mapping of str to mapping of float to float
        For each line, by its name in the legend, the value of y for each x.
    logarithmic : {"", "x", "y", "xy"}
        Axes on which equal factors take equal lengths; they leave out points that are not positive.
    dashed : collection of str
        Names of lines that are dashed, without marks: bounds, and what others are held against.

    Returns
    -------
    Chart
        ``svg()`` is its picture, which needs matplotlib.

    Raises
    ------
    InputError
        If there is no point to draw, or an axis or a dashed line has no such name.

    Examples
    --------
    >>> import commsim as cs
    >>> times = {"ring": {1: 0.2, 64: 6.5}, "tree": {1: 0.1, 64: 7.2}}
    >>> cs.line_chart("All-reduce", "size (MiB)", "time (ms)", times, logarithmic="xy")
    Chart(All-reduce, 2 lines)
    """
    _check_title(title)
    if not isinstance(lines, Mapping) or not all(isinstance(line, Mapping) for line in lines.values()):
        raise wrong_kind("lines", "a dict of lines by name, each a dict of y by x", lines)
    if set(logarithmic) - {"x", "y"}:
        raise InputError(f"logarithmic must be x, y or xy, got {logarithmic!r}")
    if unknown := set(dashed) - set(lines):
        raise InputError(f"dashed must name lines, got {min(unknown)!r}; known: {', '.join(lines)}")
    series = [Series(name, tuple(sorted(line.items())), name in dashed) for name, line in lines.items()]
    across = ChartAxis(x, "x" in logarithmic, _whole_numbers({at for line in lines.values() for at in line}))
    try:
        return draw_chart(title, across, ChartAxis(y, "y" in logarithmic), series)
    except ValueError as error:
        raise InputError(str(error)) from None


def bar_chart(title: str, label: str, values: Mapping[str, Mapping[str, float]]) -> Chart:
    """Make a chart of groups of bars, which shows itself in a notebook.

    Parameters
    ----------
    title : str
        Title above the chart.
    label : str
        Label of the axis, with its unit.
    values : mapping of str to mapping of str to float
        For each group, from the top, the length of each bar by its name in the legend; all groups have the same names.

    Returns
    -------
    Chart
        ``svg()`` is its picture, which needs matplotlib.

    Raises
    ------
    InputError
        If there is no group, or groups have different bars.

    Examples
    --------
    >>> import commsim as cs
    >>> cs.bar_chart("A step", "seconds", {"tp 8": {"compute": 4.0, "exposed": 0.8}})
    Chart(A step, 2 bars)
    """
    _check_title(title)
    if not isinstance(values, Mapping) or not all(isinstance(group, Mapping) for group in values.values()):
        raise wrong_kind("values", "a dict of groups by name, each a dict of lengths by name", values)
    names = _names_of_bars(values)
    return draw_bars(title, label, tuple(values), {name: [group[name] for group in values.values()] for name in names})


def _check_title(title: object) -> None:
    if not isinstance(title, str):
        raise wrong_kind("title", "text", title)


def _whole_numbers(values: Set[float]) -> tuple[float, ...]:
    """Return values that each get a tick: a few whole numbers, such as machines, between which there is nothing."""
    few = len(values) <= MAX_TICKS and all(value == int(value) for value in values)
    return tuple(sorted(values)) if few else ()


def _names_of_bars(values: Mapping[str, Mapping[str, float]]) -> Sequence[str]:
    different = {tuple(group) for group in values.values()}
    if len(different) != 1 or () in different:
        raise InputError("a chart of bars needs at least one group, and the same names of bars in all groups")
    return different.pop()
