"""The schema of a cluster's file takes what the reader takes, and refuses wrong fields as it does."""

import copy
import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

import commsim as cs
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.placement.cluster_schema import cluster_schema

ROOT = Path(__file__).parents[2]
FILES = (
    [one for one in sorted((ROOT / "examples").glob("*.toml")) if "[hosts]" in one.read_text(encoding="utf-8")]
    + [ROOT / "tests" / "answers" / "inputs" / "cluster.toml"]
)  # fmt: skip
GIVEN = {
    "topology": {"name": "torus", "dims": [2, 2], "wrap": True, "bandwidth": "50Gbps"},
    "hosts": {"gpus": 4, "per_host": {"h1": 2}, "busy": {"h0": 1}},
}


def is_valid(tree) -> bool:
    return jsonschema.Draft202012Validator(cluster_schema()).is_valid(tree)


def test_the_schema_is_one_and_is_printed(capsys):
    jsonschema.Draft202012Validator.check_schema(cluster_schema())
    assert main(["schema", "cluster.toml"]) == 0
    assert json.loads(capsys.readouterr().out) == cluster_schema()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_files_that_are_shipped_are_valid(path):
    assert is_valid(tomllib.loads(path.read_text(encoding="utf-8")))
    cs.read_cluster(path)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (("rack",), {}),
        (("topology",), {}),
        (("topology", "spec"), "star:n_hosts=4"),
        (("topology", "file"), "n.toml"),
        (("topology", "wrap"), {}),
        (("hosts", "gpus"), -1),
        (("hosts", "gpus"), 1.5),
        (("hosts", "gpus"), 1025),
        (("hosts", "racks"), 2),
        (("hosts", "busy"), 3),
        (("hosts", "per_host"), {"h1": "two"}),
    ],
)
def test_what_the_schema_refuses_the_reader_refuses(at, value):
    tree = copy.deepcopy(GIVEN)
    assert is_valid(tree)
    cs.read_cluster(tree)
    *tables, key = at
    inner = tree
    for name in tables:
        inner = inner[name]
    inner[key] = value
    assert not is_valid(tree)
    with pytest.raises(InputError):
        cs.read_cluster(tree)
