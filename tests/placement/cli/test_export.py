"""What is exported to a terminal is the file that a pipe gets: no line is broken, and parsers read it."""

import contextlib
import io
import json

import pytest

from commsim.cli import main
from commsim.placement.schedulers.slurm import read_slurm_conf
from commsim.placement.schedulers.tree_network import tree_of
from commsim.prediction.inputs import load_network

SPEC = "leaf_spine:n_leaves=9,n_spines=7,hosts_per_leaf=11,bandwidth=50Gbps"
KINDS = ("slurm-conf", "slurm-yaml", "topograph-model", "topograph-graph", "volcano", "kueue")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def printed(stream, *command):
    with contextlib.redirect_stdout(stream):
        assert main([str(word) for word in command]) == 0
    return stream.getvalue()


@pytest.mark.parametrize("words", [*((kind,) for kind in KINDS), ("slurm-conf", "--plugin", "block")])
def test_a_terminal_shows_the_same_lines_as_a_pipe(tmp_path, monkeypatch, words):
    """Comments and lists of nodes were broken at 80 columns: what was copied from there was no YAML, or no command."""
    monkeypatch.setenv("COLUMNS", "40")
    (tmp_path / "cluster.toml").write_text(f'[topology]\nspec = "{SPEC}"\n[hosts]\ngpus = 8\n')
    command = ("place", "export", tmp_path / "cluster.toml", "--to", *words)
    text = printed(Terminal(), *command)
    assert text == printed(io.StringIO(), *command)
    assert max(map(len, text.splitlines())) > (40 if words[0] != "topograph-graph" else 20)
    tree = tree_of(load_network(SPEC))[0]
    if words[0] == "slurm-conf":
        read = read_slurm_conf(text)
        assert len(read.blocks if len(words) > 1 else read.switches) >= 9
    elif words[0] == "topograph-graph":
        assert len(json.loads(text)["instances"]) == 99
    else:
        yaml = pytest.importorskip("yaml")
        documents = list(yaml.safe_load_all(text))
        assert len(documents) == (len(tree.switches) if words[0] == "volcano" else 1)
    if words[0] == "kueue":
        labels = [line for line in text.splitlines() if line.startswith("# kubectl label node ")]
        assert len(labels) == 99
        assert all(line.endswith("=spine0") for line in labels)


@pytest.mark.parametrize("verb", ["place serve", "cluster.toml", "place rank"])
def test_a_schema_on_a_terminal_is_json(monkeypatch, verb):
    monkeypatch.setenv("COLUMNS", "60")
    assert json.loads(printed(Terminal(), "schema", *verb.split()))


def test_placed_jobs_are_exported_as_they_are(tmp_path):
    """A file of jobs with their placements was refused: expected a table at the top level, got list."""
    (tmp_path / "cluster.toml").write_text(f'[topology]\nspec = "{SPEC}"\n[hosts]\ngpus = 8\n')
    row = {"gpus": 8, "iter_time_ms": 100, "phases": []}
    jobs = [row | {"job": "a", "placement": ["h0-1x4"], "start_ms": 20}, row | {"job": "b"}]
    command = ("place", "export", tmp_path / "cluster.toml", "--placements", tmp_path / "jobs.json", "--to")
    for tree in (jobs, {"jobs": jobs}):
        (tmp_path / "jobs.json").write_text(json.dumps(tree))
        lines = printed(io.StringIO(), *command, "nodelist").splitlines()
        assert lines[-1] == "--nodes=2 --ntasks=8 --ntasks-per-node=4 --gpus-per-node=4 --nodelist=h[0-1] --switches=1"
        assert "commsim/start-ms: '20'" in printed(io.StringIO(), *command, "pods")
    for wrong, said in (
        (jobs[1:], "no job has a placement"),
        ([jobs[0] | {"placement": ["h0x8"], "gpus": 8}, jobs[0] | {"job": "c", "placement": ["h0x8"]}], "beside job a"),
    ):
        (tmp_path / "jobs.json").write_text(json.dumps(wrong))
        with contextlib.redirect_stderr(io.StringIO()) as told:
            assert main([str(word) for word in (*command, "pods")]) == 2
        assert said in told.getvalue()
