"""The benchmark of scale: its rows, its exponents, and that everything in it can be built."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.processes import Run
from benchmarks.scale import command as scale
from benchmarks.scale import page as page_of
from benchmarks.scale import row as row_of
from benchmarks.scale.page import COLUMNS, cells, growth_line, write_page
from benchmarks.scale.works import SERIES, SIZE
from commsim.core.errors import BackendError


def row(work: str, ranks: int, cpu: float, rss: float = 400.0) -> dict[str, Any]:
    return {"work": work, "ranks": ranks, "cpu_s": cpu, "rss_MB": rss, "base_MB": 100.0, "met": None}


@pytest.mark.parametrize("name", SERIES)
def test_every_series_has_seats_for_its_ranks(name: str) -> None:
    series = SERIES[name]
    network = series.build_network(series.few)
    assert len(network.endpoints) >= series.few
    assert set(series.limits) <= set(series.ranks)
    series.build_schedule(series.few)


def test_random_rates_are_alike_both_ways_and_never_above_the_links_own() -> None:
    network = SERIES["ring, star, random rates"].build_network(16)
    plain = SERIES["ring, star"].build_network(16)
    assert network.is_cabled
    assert len(set(network.bandwidth)) == 16
    assert (network.bandwidth <= plain.bandwidth).all()
    assert (network.bandwidth >= plain.bandwidth / 2).all()


def test_unequal_blocks_are_of_one_to_four_parts() -> None:
    schedule = SERIES["unequal all-to-all, fat tree, dmodk"].build_schedule(16)
    assert not isinstance(schedule, str)
    assert set(np.unique(schedule.expand()["count"])) == {1, 2, 3, 4}


def test_an_exponent_is_the_slope_of_logarithms() -> None:
    assert scale.exponent([(n, 3.0 * n**1.7) for n in (10, 100, 1000)]) == pytest.approx(1.7)
    assert scale.exponent([(10, 1.0)]) is None
    assert scale.exponent([(10, 0.0), (20, 0.0)]) is None


def test_growth_leaves_out_what_failed_and_memory_that_hardly_grew() -> None:
    found = [row("a", 10, 1.0, 105.0), row("a", 100, 10.0, 105.0), row("b", 10, 1.0)]
    found += [
        row("c", 10, 1.0, 200.0),
        row("c", 20, 4.0, 300.0),
        {"work": "c", "ranks": 40, "error": "no", "met": False},
    ]
    lines = scale.growth(found)
    assert [line["work"] for line in lines] == ["a", "c"]
    assert (lines[0]["cpu"], lines[0]["memory"]) == (pytest.approx(1.0), None)
    assert (lines[1]["cpu"], lines[1]["memory"]) == (pytest.approx(2.0), pytest.approx(1.0))
    assert growth_line(lines[1]) == "c, 10 to 20 ranks: cpu ~ ranks^2.00, memory above the base ~ ranks^1.00"


@pytest.mark.parametrize(
    ("said", "met"),
    [
        ({"cpu_s": 0.05, "rss_MB": 300.0}, True),
        ({"cpu_s": 0.06, "rss_MB": 300.0}, False),
        ({"cpu_s": 0.01, "rss_MB": 301.0}, False),
        ({"error": "no"}, False),
    ],
)
def test_a_row_is_within_both_limits_or_not(said: dict[str, Any], met: bool) -> None:
    assert scale.judged(said, SERIES["ring, star"], 4096)["met"] is met
    assert scale.judged(said, SERIES["ring, star"], 1024)["met"] is None


def test_a_process_that_fails_is_a_row_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], limit: float, memory: float) -> Run:
        raise BackendError("out of luck")

    monkeypatch.setattr(scale, "run", fail)
    (first, *_) = scale.rows(["ring, star"], quick=False, limit=1.0)
    assert first["error"] == "out of luck"
    assert "out of luck" in cells(first)
    assert len(cells(first)) == len(COLUMNS)


@pytest.mark.deep
@pytest.mark.slow
def test_the_program_writes_rows_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, page = tmp_path / "rows.json", tmp_path / "scale.md"
    assert scale.main(["--quick", "--only", "ring, star, random", "--json", str(out), "--write", str(page)]) == 0
    tree = json.loads(out.read_text())
    wanted = {"work", "ranks", "topology", "routing", "engine", "cpu_s", "rss_MB", "time_s", "method", "import_s"}
    wanted |= {"full_s", "ratio"}
    assert [found["ranks"] for found in tree["rows"]] == [64, 128]
    for found in tree["rows"]:
        assert wanted <= set(found)
        n = found["ranks"]
        least = 2 * (n - 1) * SIZE / n / 12.5e9  # every rank sends as much over a link of at most 100 Gb/s
        assert least < found["time_s"] < 2.1 * least
        assert abs(found["full_difference"]) < 1e-9
        assert found["method"] == "recurrence"
    assert "cpu ~ ranks^" in capsys.readouterr().out
    assert "| ring, star, random rates | 64 |" in page.read_text()


def test_an_error_of_the_row_program_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert scale.main(["--only", "no such series"]) == 2
    assert "no series has 'no such series' in its name" in capsys.readouterr().err
    assert scale.main(["--limit-s", "0"]) == 2


def test_a_page_names_no_machine(tmp_path: Path) -> None:
    import platform

    write_page(str(tmp_path / "page.md"), [], [], [])
    text = (tmp_path / "page.md").read_text()
    assert text.startswith("# Scale\n")
    assert platform.node() not in text


def test_works_that_are_not_measured_again_keep_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, works = tmp_path / "page.md", ["a", "a, b", "c"]

    def write(names: Sequence[str], seconds: float) -> list[str]:
        found = [{"work": name, "ranks": n, "cpu_s": seconds} for name in names for n in (10, 20)]
        line = {"ranks": [10, 20], "cpu": seconds, "memory": None}
        write_page(str(page), found, [line | {"work": name} for name in names], works)
        text = page.read_text().splitlines()
        table = [" ".join(line.split(" | ")[:4]) for line in text if line.startswith(("| a", "| c"))]
        return table + [line for line in text if line.startswith(("- a", "- c"))]

    def rows(*seconds: float) -> list[str]:
        pairs = list(zip(works, seconds, strict=True))
        lines = [f"| {work} {n} - {s:.3g}" for work, s in pairs for n in (10, 20)]
        return lines + [f"- {work}, 10 to 20 ranks: cpu ~ ranks^{s:.2f}" for work, s in pairs]

    assert write(works, 1.5) == rows(1.5, 1.5, 1.5)
    assert write(["a, b"], 2.5) == rows(1.5, 2.5, 1.5)
    assert write(["c", "a"], 3.5) == rows(3.5, 2.5, 3.5)
    assert "Measured later" not in page.read_text()
    kind = page_of.machine_kind()
    monkeypatch.setattr(page_of, "machine_kind", lambda: "another one, 3.5 GHz")
    assert write(["a, b"], 4.5) == rows(3.5, 4.5, 3.5)
    assert f"One core of: {kind}.\n" in page.read_text()
    assert write(["a"], 5.5) == rows(5.5, 4.5, 3.5)
    assert "\nMeasured later, on another one, 3.5 GHz: a; a, b.\n" in page.read_text()
    monkeypatch.setattr(page_of, "machine_kind", lambda: kind)
    assert write(["a"], 6.5) == rows(6.5, 4.5, 3.5)
    assert "\nMeasured later, on another one, 3.5 GHz: a, b.\n" in page.read_text()
    assert write(works, 1.5) == rows(1.5, 1.5, 1.5)
    assert "Measured later" not in page.read_text()


def test_a_work_that_takes_no_time_by_a_coarse_clock_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row was published as ``ZeroDivisionError``: both of a pair took less than a tick."""
    calls = 0

    def work(name: str, n: int, method: str = "auto") -> tuple[row_of.Seconds, Any, Any]:
        nonlocal calls
        calls += 1
        tick = 0.01 if calls > 2 * row_of.TIMES and calls % 2 == 0 else 0.0
        return (0.0, 0.0, tick), None, SimpleNamespace(time=1.0)

    monkeypatch.setattr(row_of, "work", work)
    found = row_of.against_events("byteps, fat tree, ecmp", 16, 1.0)
    assert found["full_s"] > 0
    assert found["full_difference"] == 0
    assert sum(row_of.repeated("byteps, fat tree, ecmp", 16)) > 0


def test_the_cost_of_hashes_is_measured_in_turn_and_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.scale import hashes

    monkeypatch.setattr(
        hashes, "WORKS", {"halving_doubling, small fat tree, ecmp": 16, "hierarchical, rails, ecmp": 512}
    )
    assert hashes.main(["--only", "halving", "--times", "1"]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("halving")]
    assert row.split()[-1] != "inf"
    assert float(row.split()[-1]) > 0
