"""The answers of version 0.1 to several hundred command lines, of all verbs, are those of today."""

import json
import random

import pytest
import record
from record import HERE, answer, command_lines, corrections, differences, in_new_words, verb_of

LINES = command_lines()
FILES = [line for line in LINES if "files_0_1" in line]
# Linear programs that take a quarter of a minute.
LONG = ("topo check leaf_spine",)
VERBS = sorted({verb_of(line) for line in LINES})


@pytest.fixture(scope="module")
def recorded():
    return json.loads((HERE / "recorded.json").read_text())


def answers(lines, tmp_path):
    found = {}
    for i, line in enumerate(lines):
        (tmp_path / str(i)).mkdir()
        found[line] = answer(in_new_words(line), tmp_path / str(i))
    return found


def named_anew(recorded):
    """Return a copy of the recorded answers with the names of today."""
    words, copy = record.renamed()["words"], json.loads(json.dumps(recorded))
    for one in copy.values():
        for column in one.get("values", {}).values():
            column[:] = [words.get(value, value) if isinstance(value, str) else value for value in column]
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("part", ["drawn", pytest.param("others", marks=pytest.mark.deep)])
@pytest.mark.parametrize("verb", VERBS)
def test_the_answers_are_those_that_were_recorded(verb, part, recorded, tmp_path):
    lines = [line for line in LINES if verb_of(line) == verb and line not in FILES]
    short = [line for line in lines if not line.startswith(LONG)]
    drawn = random.Random(verb).sample(short, min(2, len(short)))
    lines = drawn if part == "drawn" else [line for line in lines if line not in drawn]
    assert differences(recorded, answers(lines, tmp_path), lines) == []


@pytest.mark.parametrize("line", FILES)
def test_files_of_version_0_1_load_or_are_refused_by_their_version(line, recorded, tmp_path):
    found = answers([line], tmp_path)
    if found[line]["code"]:
        assert found[line]["code"] == 2
        (why,) = found[line]["why"].splitlines()
        assert "version" in why
    else:
        assert differences(recorded, found, [line]) == []


def test_every_line_has_a_recorded_answer_and_every_difference_is_told(recorded):
    assert set(recorded) == set(LINES)
    line = next(line for line in LINES if line.startswith("run "))
    changed = named_anew(recorded)
    assert differences(recorded, changed) == []
    changed[line]["values"]["results.time_s"][0] *= 1 + 1e-6
    changed[line]["values"]["results.collective"][0] = "another"
    assert [text.rsplit(": ", 2)[1] for text in differences(recorded, changed)] == [
        "results.collective",
        "results.time_s",
    ]
    assert differences(recorded, {**named_anew(recorded), line: {"code": 2}}) == [f"{line}: exit code: 0 became 2 "]


def test_a_correction_of_values_is_none_of_the_exit_code(recorded):
    line = next(line for line in LINES if any("keys" not in one for one in corrections(line)))
    assert recorded[line]["code"] == 0
    assert differences(recorded, {line: {"code": 2}}, [line]) == [f"{line}: exit code: 0 became 2 "]


def test_renamed_words_and_named_corrections_are_followed(recorded, monkeypatch):
    line = next(line for line in LINES if "--method full" in line)
    one = {"lines": ["run * --method full *"], "keys": ["busbw_Bps"], "within": 0.1, "reason": "a trial"}
    table = {"arguments": {"--method *": ""}, "keys": {"time_s": "seconds"}, "words": {"flow": "fluid"}}
    monkeypatch.setattr(record, "renamed", lambda: {**table, "correction": [one], "removed_keys": ["n_ranks"]})
    assert "--method" not in in_new_words(line)
    assert "--method" in line
    old = recorded[line]
    values = {
        key.replace("time_s", "seconds"): column for key, column in old["values"].items() if key[-7:] != "n_ranks"
    }
    values |= {"results.engine": ["fluid"], "results.busbw_Bps": [old["values"]["results.busbw_Bps"][0] * 1.05]}
    assert differences({line: old}, {line: {"code": 0, "values": values}}) == []
    values["results.busbw_Bps"][0] *= 1.1
    values["results.engine"] = ["solid"]
    told = differences({line: old}, {line: {"code": 0, "values": values}})
    assert [text.rsplit(": ", 2)[1] for text in told] == ["results.busbw_Bps", "results.engine"]
