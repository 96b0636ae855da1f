import csv
import io
import json

from commsim.report import answer_files


def test_answers_go_to_standard_output_alone_when_they_are_asked_for_there(capsys):
    with answer_files.only_answer("-"):
        print("a table")
        answer_files.write_answer("-", {"a": 1})
    assert json.loads(capsys.readouterr().out) == {"a": 1}
    with answer_files.only_answer(None, "x.csv"):
        print("a table")
    assert capsys.readouterr().out == "a table\n"


def test_rows_as_csv_have_a_column_for_each_value_and_all_digits(capsys):
    rows = [{"a": 0.1 + 0.2, "b": {"c": "x,y", "d": None}}, {"a": 3, "e": [1, 2], "f": True}]
    with answer_files.only_answer(None, "-"):
        print("a table")
        answer_files.write_rows("-", rows)
    read = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(read[0]) == ["a", "b.c", "b.d", "e", "f"]
    assert float(read[0]["a"]) == 0.1 + 0.2
    assert read[0]["b.c"] == "x,y"
    assert [read[1][name] for name in ("a", "b.c", "e", "f")] == ["3", "", "[1, 2]", "true"]
