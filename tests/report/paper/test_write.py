import csv
import re
import subprocess
import sys

import pytest

from commsim.core.errors import InputError
from commsim.report.figures.all_figures import OF_RUNS, make_figures
from commsim.report.paper.style import STYLE, WIDTHS, read_width
from commsim.report.paper.write import write_plot
from commsim.report.played_run import play_run
from commsim.report.read_rows import table_of_rows
from commsim.report.read_study import make_study
from commsim.run import prepare

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps,latency=1us"
NAMES = ["busbw", "time", "speedup", "choice", "cdf", "strong", "weak"]
NAMES += ["links", "timeline", "link-timeline", "messages"]
STAMP = {"commsim": "1.2.3", "configuration": "sha256 abc"}


def figures():
    rows = []
    for name in ("ring_all_reduce", "double_tree_all_reduce"):
        for ranks in (2, 4):
            ready = prepare(name, NETWORK, n_ranks=ranks)
            rows += [ready.predict(size, engine="alpha-beta").row() for size in (1024, 2048, 4096)]
    made = {figure.name: figure for figure in make_figures(make_study("s", table_of_rows(rows), {}))[0]}
    run = play_run("ring", prepare("ring_all_reduce", NETWORK), 2**16, {})
    return made | {name: OF_RUNS[name](run) for name in ("network", "links", "timeline", "link-timeline", "messages")}


@pytest.fixture(scope="module")
def made():
    pytest.importorskip("matplotlib")
    return figures()


def fonts(svg):
    return {float(size) for size in re.findall(r"font: (?:bold )?([\d.]+)px", svg)}


@pytest.mark.parametrize(
    "name",
    ["busbw", "time", "speedup", "choice", "cdf", "strong", "weak", "links", "timeline", "link-timeline", "messages"],
)
def test_every_figure_is_drawn_as_wide_as_a_column_with_its_csv_beside_it(made, name, tmp_path):
    beside = write_plot(made[name], tmp_path / "f.svg", 3.33, STAMP)
    text = (tmp_path / "f.svg").read_text()
    assert re.search(r'<svg [^>]*width="239\.76pt"', text)
    assert "configuration" in text
    rows = list(csv.reader(beside.read_text().splitlines()))
    assert len(rows) > 1
    assert all(len(row) == len(rows[0]) for row in rows)


def test_a_network_is_a_picture_with_its_loads_beside_it(made, tmp_path):
    beside = write_plot(made["network"], tmp_path / "f.pdf", 3.33, STAMP)
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
    loads = list(csv.DictReader(beside.read_text().splitlines()))
    assert loads[0]["link"] == "h0->leaf0"
    assert all(float(row["load"]) <= 1 for row in loads)
    assert any(float(row["carried_B [B]"]) > 0 for row in loads)


def test_letters_are_at_least_seven_points():
    sizes = {key: value for key, value in STYLE.items() if key.endswith("size") and "marker" not in key}
    assert len(sizes) >= 5
    assert min(sizes.values()) >= 7


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_the_same_data_gives_the_same_bytes_without_a_date(made, suffix, tmp_path):
    for name in ("a", "b"):
        write_plot(made["busbw"], tmp_path / f"{name}.{suffix}", 3.33, STAMP)
    first = (tmp_path / f"a.{suffix}").read_bytes()
    assert first == (tmp_path / f"b.{suffix}").read_bytes()
    assert b"CreationDate" not in first
    assert b"<dc:date>" not in first
    assert b"1.2.3" in first


def test_another_process_gives_the_same_bytes(made, tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_write as t; "
        "t.write_plot(t.figures()['choice'], sys.argv[2], 3.33, t.STAMP)"
    )
    write_plot(made["choice"], tmp_path / "a.pdf", 3.33, STAMP)
    here = __file__.rpartition("/")[0]
    subprocess.run([sys.executable, "-c", code, here, tmp_path / "b.pdf"], check=True, timeout=300)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


def test_widths_are_columns_pages_or_inches():
    assert read_width("column") == WIDTHS["column"] == 3.33
    assert read_width("5.5") == 5.5
    for bad in ("0", "nan", "inf", "wide", "1e9"):
        with pytest.raises(InputError, match="--width must be"):
            read_width(bad)


def test_a_file_that_is_no_plot_is_refused_before_anything_is_written(made, tmp_path):
    with pytest.raises(InputError, match=r"ends with \.pdf, \.svg, \.png"):
        write_plot(made["busbw"], tmp_path / "f.gif", 3.33, {})
    with pytest.raises(InputError, match="no such folder"):
        write_plot(made["busbw"], tmp_path / "not" / "f.pdf", 3.33, {})
    assert list(tmp_path.iterdir()) == []
