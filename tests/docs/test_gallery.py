"""The notebooks of the gallery run, and their figures show what is true."""

import importlib.util
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

import commsim

ROOT = Path(commsim.__file__).parents[1]
FOLDER = ROOT / "examples" / "gallery"
MAX_LINES = 40

_spec = importlib.util.spec_from_file_location("gallery_of_site", ROOT / "docs" / "_site" / "gallery.py")
gallery = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(gallery)


def lines_of(chart):
    """Return each line of a chart as a dict of y by x."""
    return {line.name: dict(line.points) for line in chart.panels[0].series}


def busbw_is_between_the_bounds(chart):
    expected, low, high, floor = lines_of(chart).values()
    assert all(0 < floor[n] < low[n] < expected[n] < high[n] for n in expected)
    assert expected[32] < expected[2] < expected[1]  # NVLink alone, then the NICs


def a_dead_cable_never_helps(chart):
    spread, hashed = lines_of(chart).values()
    for times in (spread, hashed):
        assert all(times[n] <= times[n + 1] for n in range(3))
    assert all(spread[n] <= hashed[n] * (1 + 1e-9) for n in spread)
    # Of the 15 messages of each of 4 hosts 12 leave the leaf: 48 on the last uplink, where a host's port has 15.
    assert spread[3] / spread[0] == pytest.approx(3.2, rel=0.01)


def ring_and_tree_cross_once(chart):
    ring, tree = lines_of(chart).values()
    is_ring_faster = [ring[size] < tree[size] for size in sorted(ring)]
    assert is_ring_faster == sorted(is_ring_faster)
    assert {False, True} == set(is_ring_faster)


def loss_costs_switchml_its_lead(chart):
    switch, clean, ring = lines_of(chart).values()
    rates = sorted(switch)
    assert all(switch[a] > switch[b] for a, b in pairwise(rates))
    assert switch[rates[0]] <= clean[rates[0]]
    assert switch[rates[0]] > ring[rates[0]] > switch[rates[-1]]


def less_density_takes_less_time(chart):
    spare, beside, ring = lines_of(chart).values()
    densities = sorted(spare)
    for times in (spare, beside):
        assert all(times[a] <= times[b] * (1 + 1e-9) for a, b in pairwise(densities))
    assert spare[100] < 0.7 * beside[100]  # ports of workers that are aggregators carry twice the bytes
    assert 4 * beside[1] < ring[1]
    assert beside[100] == pytest.approx(ring[100], rel=0.02)  # both send all of the tensor twice, less a part


def servers_gain_on_the_ring(chart):
    byteps, ring = lines_of(chart).values()
    assert byteps[0] == pytest.approx(ring[0], rel=0.01)
    assert all(byteps[n + 1] < byteps[n] for n in range(8))
    assert byteps[8] == pytest.approx(2**30 / 12.5e9 * 1e3, rel=0.05)  # the tensor once at 100 Gb/s


def shifted_circles_stay_below_the_capacity(chart):
    together, later, capacity = lines_of(chart).values()
    assert max(together.values()) > max(capacity.values()) >= max(later.values())
    assert sum(later.values()) == pytest.approx(sum(together.values()), rel=0.02)  # the same bytes


def parts_are_less_than_their_step(chart):
    bars = chart.panels[0].values
    step = bars["step"]
    assert all(0 < part <= whole for part, whole in zip(bars["computation"], step, strict=True))
    assert max(bars["exposed tensor"][1:]) == bars["exposed tensor"][3]  # all eight GPUs of a machine
    assert bars["exposed tensor"][0] == 0
    pipelined = [", pipeline 1," not in case for case in chart.panels[0].cases]
    assert [bubble > 0 for bubble in bars["bubble"]] == pipelined


TRUE = dict(zip(gallery.NAMES, (
    busbw_is_between_the_bounds, a_dead_cable_never_helps, ring_and_tree_cross_once, loss_costs_switchml_its_lead,
    less_density_takes_less_time, servers_gain_on_the_ring, shifted_circles_stay_below_the_capacity,
    parts_are_less_than_their_step,
), strict=True))  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", gallery.NAMES)
def test_a_figure_shows_what_is_true(name):
    figure = gallery.executed(name)["figure"]
    TRUE[name](figure)
    assert "<path" in figure.svg()


def test_a_site_that_is_only_checked_has_its_pages_and_empty_pictures(tmp_path):
    gallery.write(tmp_path, are_drawn=False)
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    assert drawn == {f"{name}.svg" for name in gallery.NAMES}
    assert all(f"({name})" in (tmp_path / "gallery.md").read_text() for name in drawn)


def test_the_gallery_has_all_notebooks_of_its_folder():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(gallery.NAMES)


@pytest.mark.parametrize("name", gallery.NAMES)
def test_a_notebook_is_short_and_kept_without_outputs(name):
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text())
    cells = notebook["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "code", "markdown"]
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert not any(cell.get("outputs") for cell in cells)
    assert sum(len(cell["source"]) for cell in cells) < MAX_LINES
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert re.findall(r"^(?:import|from) .*", code, re.MULTILINE) == ["import commsim as cs"]
    assert code.splitlines()[-1] == "figure"
    title = cells[0]["source"][0].strip("# \n")
    assert f"![{title}]({name}.svg)" in gallery.section_of(name)
