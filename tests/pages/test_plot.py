import csv
import re
import subprocess
import sys

import pytest

from commsim.core.errors import InputError
from commsim.pages.figure_tables import table_of_rows
from commsim.pages.figures_of_runs import OF_RUNS
from commsim.pages.figures_of_study import make_figures
from commsim.pages.plots.plot import check_plot, draw, write_plot
from commsim.pages.plots.plot_axes import STYLE, WIDTHS, read_width
from commsim.pages.simulated_run import simulate_run
from commsim.pages.study import make_study
from commsim.prediction.build import prepare

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps,latency=1us"
NAMES = ["busbw", "time", "speedup", "map", "choice", "cdf", "strong", "weak"]
NAMES += ["links", "timeline", "link-timeline", "messages"]
STAMP = {"commsim": "1.2.3", "configuration": "sha256 abc"}


def figures():
    rows = []
    for name in ("ring_all_reduce", "double_tree_all_reduce"):
        for ranks in (2, 4):
            ready = prepare(name, NETWORK, n_ranks=ranks)
            rows += [ready.predict(size, engine="alpha-beta").row() for size in (1024, 2048, 4096)]
    made = {figure.name: figure for figure in make_figures(make_study("s", table_of_rows(rows), {}))[0]}
    run = simulate_run("ring", prepare("ring_all_reduce", NETWORK), 2**16)
    one = [row for row in rows if row["n_ranks"] == 4]
    made["map"] = next(f for f in make_figures(make_study("s", table_of_rows(one), {}))[0] if f.name == "speedup")
    return made | {name: OF_RUNS[name](run) for name in ("network", "links", "timeline", "link-timeline", "messages")}


@pytest.fixture(scope="module")
def made():
    pytest.importorskip("matplotlib")
    return figures()


def fonts(svg):
    return {float(size) for size in re.findall(r"font: (?:bold )?([\d.]+)px", svg)}


@pytest.mark.sample(5)
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


def boxes(texts, renderer):
    return [text.get_window_extent(renderer) for text in texts if text.get_visible() and text.get_text()]


@pytest.mark.sample(10)
@pytest.mark.parametrize("width", [3.33, 7.0])
@pytest.mark.parametrize("name", NAMES)
def test_no_word_covers_another_or_leaves_the_plot(made, name, width):
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with mpl.rc_context(STYLE):
        canvas = draw(made[name], width)
        renderer = FigureCanvasAgg(canvas).get_renderer()
        canvas.draw(renderer)
        edge = canvas.bbox.padded(2)
        for axes in canvas.axes:
            assert axes.bbox.height > 0.25 * canvas.dpi or len(canvas.axes) > 1, name
            for axis in (axes.xaxis, axes.yaxis):
                low, high = sorted(axis.get_view_interval())
                at = axis.get_majorticklocs()
                shown = [label for label, x in zip(axis.get_ticklabels(), at, strict=True) if low <= x <= high]
                found = boxes(shown, renderer)
                assert not any(a.overlaps(b) for i, a in enumerate(found) for b in found[:i]), (name, axis)
                for box in [*found, *boxes([axis.label], renderer)]:
                    assert edge.x0 <= box.x0 <= box.x1 <= edge.x1, (name, axis.get_label_text())
                    assert edge.y0 <= box.y0 <= box.y1 <= edge.y1, (name, axis.get_label_text())


def test_many_names_make_a_plot_higher_and_its_axes_no_smaller():
    pytest.importorskip("matplotlib")
    import matplotlib as mpl

    heights = []
    with mpl.rc_context(STYLE):
        for n in (2, 12):
            rows = [
                {"collective": f"a_rather_long_name_{i:02}", "operation": "all_reduce", "size_B": size, "time_s": 1e-6,
                 "busbw_Bps": 1e9 + i} for i in range(n) for size in (1024, 2048)
            ]  # fmt: skip
            canvas = draw(make_figures(make_study("s", table_of_rows(rows), {}))[0][0], 3.33)
            canvas.draw_without_rendering()
            heights.append(canvas.axes[0].bbox.height / canvas.dpi)
    assert heights[1] > 0.9 * heights[0] > 0.9


def test_a_map_is_pale_where_its_algorithm_hardly_leads():
    pytest.importorskip("matplotlib")
    rows = [
        {"collective": name, "operation": "all_reduce", "size_B": s, "time_s": time, "busbw_Bps": 1e9}
        for s, other in ((1024, 1.001e-5), (2048, 2e-5)) for name, time in (("ring", 1e-5), ("tree", other))
    ]  # fmt: skip
    figure = next(f for f in make_figures(make_study("s", table_of_rows(rows), {}))[0] if f.name == "choice")
    canvas = draw(figure, 3.33)
    mesh = canvas.axes[0].collections[0]
    assert mesh.get_alpha().ravel().tolist() == [0.45, 1.0]
    assert "pale: another within 1 %" in [text.get_text() for text in canvas.legends[0].get_texts()]


@pytest.mark.slow
def test_a_network_is_a_picture_with_its_loads_beside_it(made, tmp_path):
    beside = write_plot(made["network"], tmp_path / "f.pdf", 3.33, STAMP)
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
    loads = list(csv.DictReader(beside.read_text().splitlines()))
    assert loads[0]["link"] == "h0:leaf0"
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


@pytest.mark.slow
def test_another_process_gives_the_same_bytes(made, tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_plot as t; "
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


def test_a_csv_file_that_is_no_plot_s_is_not_replaced(tmp_path):
    (tmp_path / "sweep.csv").write_text("mine")
    (tmp_path / "sweep_plot.csv").write_text("mine too")
    with pytest.raises(InputError, match=r"sweep\.csv: exists") as refused:
        check_plot(tmp_path / "sweep.svg")
    named = str(refused.value).rpartition("such as ")[2]
    assert named == str(tmp_path / "sweep_plot2.svg")
    check_plot(named)
    (tmp_path / "sweep.svg").write_text("drawn before, with the CSV beside it")
    check_plot(tmp_path / "sweep.svg")


def test_a_csv_that_another_format_of_the_same_plot_wrote_is_replaced_and_no_other(tmp_path):
    (tmp_path / "x.csv").write_text("of a sweep")
    with pytest.raises(InputError, match="exists, and would get the numbers"):
        check_plot(tmp_path / "x.svg")
    (tmp_path / "x.pdf").write_bytes(b"")
    check_plot(tmp_path / "x.svg")
