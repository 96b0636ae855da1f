"""Rows, their statistics, and what is read from files."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.accuracy.known_errors import to_tree
from benchmarks.validation import real_runs
from benchmarks.validation.command import main
from benchmarks.validation.html_page import html
from benchmarks.validation.page import markdown
from benchmarks.validation.real import KEPT, read_real, real_rows, why_absent
from benchmarks.validation.row import Row, row_from_json
from benchmarks.validation.summary import looked_up, statistics, summary
from commsim.auto.case import PredictionCase
from commsim.auto.known_error import comparisons, from_tree
from commsim.core.errors import InputError

RING = Row(
    id="ring/4", kind="real", against="testbed", model="ring", engine="flow", operation="all_reduce", reference=2.0,
    ours=2.2, unit="s", source="a run", ranks=4, network="star:n_hosts=4", size=1e6, spread=0.01,
)  # fmt: skip


CASE = PredictionCase("all_reduce", "ring_all_reduce", "star", "ecmp", "packed", 1.0, 1.0, 4.0, 4.0, 1e6, 25e6, 0.0)


def other(**changes: Any) -> Row:
    return dataclasses.replace(RING, **({"id": "other"} | changes))


def test_the_error_is_relative_to_the_reference() -> None:
    assert RING.error == pytest.approx(0.1)
    assert (RING.counts, RING.missed) == (True, True)
    assert not other(ours=2.09).missed
    assert other(ours=1.8).missed


@pytest.mark.parametrize("change", [{"valid": False}, {"fitted": True}])
def test_what_proves_nothing_counts_nowhere(change: dict[str, bool]) -> None:
    row = other(ours=9.0, case=CASE, **change)
    assert (row.counts, row.missed) == (False, False)
    found = statistics([RING, row])
    assert (found.count, found.shown, found.misses) == (1, 1, 1)
    assert found.largest == pytest.approx(0.1)
    assert looked_up([row]) == []


def test_statistics_are_of_absolute_errors() -> None:
    found = statistics([other(ours=2.0 * (1 + e)) for e in (-0.4, 0.1, 0.2, -0.3, 0.0)])
    assert (found.median, found.p90, found.largest) == pytest.approx((0.2, 0.36, 0.4))


def test_a_summary_keeps_engines_and_references_apart_and_has_no_number_where_nothing_counts() -> None:
    rows = [RING, other(engine="packet", valid=False)]
    flow, packet = summary(rows)
    assert (flow["engine"], flow["count"], packet["engine"], packet["median"]) == ("flow", 1, "packet", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "guess"}, "kind must be one of closed_form, real, published, engines, got 'guess'"),
        ({"reference": 0.0}, "wanted a finite prediction and a finite reference other than 0, got 2.2 and 0.0"),
        ({"ours": float("nan")}, "got nan and 2.0"),
    ],
)
def test_rows_without_a_meaning_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        other(**change)


def test_what_auto_looks_up_are_predictions_of_known_cases_beside_real_runs() -> None:
    mine = [other(case=CASE, ours=1.8)]
    rows = [*mine, RING, other(case=CASE, against="reference solver"), other(case=CASE, engine="bound")]
    found = looked_up(rows)
    assert [(one.engine, one.against, one.case) for one in found] == [("flow", "testbed", CASE)]
    assert found[0].error == pytest.approx(-0.1)


def test_rows_come_back_from_json_as_they_were() -> None:
    for row in (RING, other(case=CASE)):
        assert row_from_json(json.loads(json.dumps(row.json())), "f.json") == row


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ours": "2"}, r"f.json: row 'ring/4': ours must be float, got '2'"),
        ({"ranks": True}, r"ranks must be int, got True"),
        ({"more": 1}, r"row 'ring/4': unknown field more"),
        ({"source": None}, r"source must be str, got None"),
        ({"case": 3}, r"row 'ring/4': case must be a table with operation, collective, network"),
        ({"case": dataclasses.asdict(CASE) | {"ranks": "4"}}, r"case.ranks must be float, got '4'"),
    ],
)
def test_damaged_rows_are_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        row_from_json(RING.json() | change, "f.json")
    with pytest.raises(InputError, match="unit is missing"):
        row_from_json({k: v for k, v in RING.json().items() if k != "unit"}, "f.json")


def test_real_rows_are_read_from_a_file_and_rows_of_other_kinds_left_out(tmp_path: Path) -> None:
    path = tmp_path / "real.json"
    path.write_text(json.dumps({"rows": [RING.json(), other(kind="engines", against="x").json()]}))
    assert list(real_rows(False, path)) == [RING]
    for text, message in (("[1]", "expected a table"), ('{"rows": 3}', "rows must be a list, got int"),
                          ('{"rows": [3]}', "a row must be a table, got int")):  # fmt: skip
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            real_rows(False, path)


def test_real_rows_come_from_real_runs_unless_a_file_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_runs, "rows", lambda quick, names=(): [other(ranks=1 + quick)])  # noqa: ARG005
    assert [row.ranks for row in real_rows(True)] == [2]
    monkeypatch.setattr("commsim.real.testbed.places.lacking", lambda: "no root")
    assert "(--real FILE), and none can be made here: no root" in why_absent(None)
    assert why_absent("real.json") == ""
    monkeypatch.setattr("commsim.real.testbed.places.lacking", lambda: "")
    assert why_absent(None) == ""


def test_some_groups_are_run_and_take_the_place_of_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a new group costs its own minutes, not those of all others."""
    asked = []

    def run(quick: bool, names: Any = ()) -> list[Row]:
        asked.append((quick, list(names)))
        return [other(id="real/star4-200M/new/1"), other(id="real/ratio/both/1", ours=3.0)]

    monkeypatch.setattr(real_runs, "rows", run)
    kept = [other(id=f"real/{name}/1") for name in ("star4-200M/old", "star8-100M/ring", "ratio/both")]
    path = tmp_path / "real.json"
    path.write_text(json.dumps({"rows": [row.json() for row in kept]}))
    found = list(real_rows(False, path, ["star4-200M"]))
    assert asked == [(False, ["star4-200M"])]
    assert [row.id for row in found] == ["real/star8-100M/ring/1", "real/star4-200M/new/1", "real/ratio/both/1"]
    assert found[-1].ours == 3.0


def test_what_was_kept_of_real_runs_is_what_is_shipped() -> None:
    shipped = [one for one in comparisons() if not one.against.startswith("packet")]
    assert from_tree(json.loads(json.dumps(to_tree(looked_up(read_real(KEPT)))))) == shipped


def test_pages_show_misses_and_what_does_not_count_and_escape_what_they_are_given() -> None:
    rows = [other(note="a|b <i>", model="<m>"), other(id="2", valid=False, note="CPU", spread=0.5)]
    text, page = markdown(rows, {"published": "no time"}), html(rows, {"published": "no time"})
    assert "a\\|b <i>" in text
    assert "*10.0%*" in text
    assert "(spread 50.0%)" in text
    assert "No rows of kind **published** (published numbers): no time." in text
    assert "a|b &lt;i&gt;" in page
    assert '<tr class="miss">' in page
    assert '<tr class="aside">' in page


def test_real_runs_from_a_file_are_in_the_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = tmp_path / "real.json"
    given.write_text(json.dumps({"rows": [RING.json() | {"note": "foreign load"}]}))
    assert (
        main(["--only", "real", "--real", str(given), "-o", str(tmp_path), "--json", str(tmp_path / "out.json")]) == 0
    )
    assert [row["id"] for row in json.loads((tmp_path / "out.json").read_text())["rows"]] == ["ring/4"]
    assert "--real FILE" in (tmp_path / "validation.md").read_text()
    assert capsys.readouterr().out.startswith("# time budget: 0 s")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--only", "guess"], "--only takes kinds of closed_form, real, published, engines, got 'guess'"),
        (["--quick", "--write-data"], "leave out --quick, and let --only have real"),
        (["--only", "engines", "--write-data"], "leave out --quick, and let --only have real"),
        (["--only", "engines", "--groups", "star4-200M"], "leave out --quick, and let --only have real"),
        (["--groups", "star4-200M,star5"], "--groups takes groups of star4-200M, star4-200M-quick"),
        (["--only", "real", "--real", "nowhere.json"], "nowhere.json: No such file"),
        (["--only", "real", "--real", "nowhere.toml"], "real runs are read from a .json file"),
    ],
)
def test_what_the_user_got_wrong_is_one_line_and_exit_code_2(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("benchmarks.validation: error: ")


def test_a_page_is_not_written_where_there_is_no_directory(tmp_path: Path) -> None:
    given = tmp_path / "real.json"
    given.write_text(json.dumps({"rows": [RING.json()]}))
    assert main(["--only", "real", "--real", str(given), "-o", str(tmp_path / "not there")]) == 2


def test_two_rows_may_not_have_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = tmp_path / "real.json"
    given.write_text(json.dumps({"rows": [RING.json(), RING.json()]}))
    assert main(["--only", "real", "--real", str(given)]) == 2
    assert "two rows have the id 'ring/4'" in capsys.readouterr().err
