"""What verbs write with ``--json`` is what the shipped JSON Schemas say."""

import csv
import io
import json
from pathlib import Path

import jsonschema
import pytest

from benchmarks.house import schemas
from commsim.cli import commands_of, listed_verbs
from commsim.cli import schema as verb

EXAMPLES = schemas.description()["examples"]
# These measure: they need mpirun, a testbed, a live switch or torch, or compile for minutes.
MEASURING = {
    "calibrate", "validate", "workload profile", "switch all-reduce", "switch serve", "switch status",
    "testbed run", "testbed share", "testbed status", "warmup",
}  # fmt: skip


def unknown(schema, value, path=""):
    """Keys of a value that its schema does not have."""
    if isinstance(value, list):
        return [key for one in value for key in unknown(schema.get("items", {}), one, path)]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    known = schema["properties"]
    inner = [key for name in value.keys() & known.keys() for key in unknown(known[name], value[name], f"{path}{name}.")]
    return [f"{path}{name}" for name in value.keys() - known.keys()] + inner


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_answer_is_as_its_schema_says(name):
    schema, answer = json.loads(verb.schemas()[name]), schemas.answer_of(EXAMPLES[name][0])
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(answer, schema)
    config = schema["properties"].pop("config")
    assert config["properties"] == {"version": {"type": "string"}}
    answer.pop("config")
    assert not unknown(schema, answer), "python -m benchmarks.house.schemas writes the schemas anew"


@pytest.mark.parametrize(
    "line",
    ["place order h0,h1 --topology star:n_hosts=4", "place rank inputs/cluster.toml inputs/two.json --hashes 1"],
)
def test_an_answer_of_one_hash_of_paths_is_as_its_schema_says(line):
    """Keys of several hashes were required, or not null: all examples drew several."""
    jsonschema.validate(schemas.answer_of(line), json.loads(verb.schemas()[" ".join(line.split()[:2])]))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_value_that_examples_lack_may_be_of_any_type(name):
    assert '"type": "null"' not in verb.schemas()[name]


def test_a_schema_says_from_which_file_it_is_written():
    for name, text in verb.schemas().items():
        assert json.loads(text)["$comment"] == schemas.COMMENT, name


def test_a_schema_refuses_an_answer_without_its_keys_or_of_another_type():
    schema = json.loads(verb.schemas()["run"])
    row = dict.fromkeys(schema["properties"]["results"]["items"]["required"], 1)
    for wrong in (
        {"schema": 1},
        {"schema": 2, "config": {}, "results": []},
        {"schema": 1, "config": {}, "results": [row]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"schema": 1, "config": {}, "network": {}, "remarks": []} | wrong, schema)


def test_every_verb_with_json_has_a_schema():
    with_json = {
        name
        for one in listed_verbs()
        for name, command in commands_of(one).items()
        if "json" in command.config.__dataclass_fields__
    }
    assert with_json - MEASURING == set(verb.schemas()) == set(EXAMPLES)


def test_schemas_are_printed_and_listed(commsim):
    assert commsim("schema").out.splitlines() == sorted([*EXAMPLES, "place serve", "cluster.toml", "cost_model.json"])
    printed = json.loads(commsim("schema", "switch", "simulate").out)
    assert printed["title"] == "commsim switch simulate --json"
    assert "those of" in commsim.refuses("schema", "fly")


def test_csv_has_the_rows_of_the_json(commsim, tmp_path):
    line = ["run", "ring_all_reduce", "--topology", "star:n_hosts=4", "-b", "1K", "-e", "4K", "-f", "2"]
    rows = commsim.results(*line, "--csv", tmp_path / "r.csv")["results"]
    text = (tmp_path / "r.csv").read_text()
    read = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["time_s"]) for row in read] == [row["time_s"] for row in rows]
    assert [float(row["busiest_link.bytes"]) for row in read] == [row["busiest_link"]["bytes"] for row in rows]
    assert commsim(*line, "--csv", "-").out == text


@pytest.mark.parametrize("line", ["place rank inputs/cluster.toml inputs/jobs.json", "topo list", "workload systems"])
def test_csv_is_written_by_verbs_with_json_of_their_own(commsim, line):
    words = [str(schemas.ANSWERS / word) if word.startswith("inputs/") else word for word in line.split()]
    answer = json.loads(commsim(*words, "--json", "-").out)
    read = list(csv.reader(io.StringIO(commsim(*words, "--csv", "-").out)))
    assert len(read) == 1 + len(answer.get("results", answer.get("candidates")))
    assert "standard output" in commsim.refuses(*words, "--csv", "-", "--json", "-")


def test_the_service_has_schemas_without_being_started(commsim):
    assert commsim("schema", "place", "serve").code == 0
    found = json.loads(commsim.out)
    jsonschema.validate(
        json.loads((Path(__file__).parents[2] / "examples" / "jobs.json").read_text()), found["jobs.json"]
    )
    assert "place serve" in commsim.refuses("schema", "place", "nothing")
