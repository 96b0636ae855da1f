import json
import subprocess
import sys

import pytest


def test_rows_are_printed_and_written_with_their_errors(commsim):
    found = commsim.results("reproduce", "crux", "-v")["results"]
    assert [row["case"] for row in found] == ["first=J1", "first=J2", ""]
    assert {"paper", "figure", "theirs", "ours", "error", "setup", "fitted"} <= set(found[0])
    assert "example 1, over 12 s" in commsim.out
    assert "of 3 numbers whose set-up is known" in commsim.out


def test_all_is_one_table_of_rows_under_the_key_that_is_promised(commsim, tmp_path):
    assert commsim("reproduce", "zero", "--json", tmp_path / "rows.json").code == 0
    tree = json.loads((tmp_path / "rows.json").read_text())
    assert tree["rows"] == tree["results"]
    assert len(tree["rows"]) == 5


def test_papers_are_listed_with_their_figures(commsim):
    found = commsim.results("reproduce")["results"]
    assert {"byteps", "switchml", "omnireduce", "cassini"} <= {row["paper"] for row in found}


def test_what_makes_no_sense_is_refused(commsim):
    assert "unknown paper 'x'" in commsim.refuses("reproduce", "x")
    assert "not both" in commsim.refuses("reproduce", "crux", "--all")


def test_figures_are_drawn(commsim, tmp_path):
    assert commsim("reproduce", "crux", "--plot", tmp_path / "crux.svg").code == 0
    assert "crux: example 1, GPUs busy" in (tmp_path / "crux.svg").read_text()
    assert "name a paper, or give --all" in commsim.refuses("reproduce", "--plot", tmp_path / "x.svg")
    assert "ends with .svg, .png or .pdf" in commsim.refuses("reproduce", "crux", "--plot", tmp_path / "x.gif")


def test_figures_are_drawn_as_a_pdf_which_is_the_same_each_time(commsim, tmp_path):
    for name in ("a.pdf", "b.pdf"):
        assert commsim("reproduce", "crux", "--plot", tmp_path / name).code == 0
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_a_paper_of_a_switch_system_is_computed_in_a_process_that_has_imported_nothing_else():
    """`reproduce iswitch`, and so `--all`, knew no collective of that name: nothing had registered the systems."""
    done = subprocess.run([sys.executable, "-m", "commsim", "reproduce", "iswitch"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_the_median_over_what_an_engine_decides_is_printed(commsim):
    commsim.results("reproduce", "switchml")
    assert "1 paper" in commsim.out
    commsim.results("reproduce", "chimera")
    assert "no number of an engine" in commsim.out
