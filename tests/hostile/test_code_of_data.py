"""Data executes no code: each field of each file and of each request is tried with a FILE.py that leaves a mark."""

import ast
import contextlib
import copy
import io
import itertools
import json
import os
import sys
import tomllib
from pathlib import Path

import pytest
from fuzzing import attempt
from place_service import pod, row, running

import commsim
from collectives import COLLECTIVES
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.core.files.own_files import own_entry
from commsim.core.spec import OwnFile, derived
from commsim.sweep.config import read_config
from topologies import TOPOLOGIES

ROOT = Path(__file__).parents[2]
INPUTS = ROOT / "tests" / "answers" / "inputs"
STAR = "star:n_hosts=4,bandwidth=10Gbps"
# The values of these name what is executed in flags, or did so in data once.
CODE = """
import os
open("ran", "w").close()
from collectives import COLLECTIVES
"""
REFUSED = "cannot execute code|is code, which is executed with --allow-code|must be `python FILE.py`"
# Two ports of a switch and one of a machine, and two cables: all the others have the same fields.
LLDP = {
    name: {"lldp": {"interface": json.loads((INPUTS / "lldp.json").read_text())[name]["lldp"]["interface"][:few]}}
    for name, few in (("leaf00", 2), ("node00", 1))
}
NETBOX = json.loads((INPUTS / "netbox.json").read_text())
NETBOX["results"] = NETBOX["results"][:2]
# Data files, and what reads each.
READERS = {
    "network.json": ({"topology": {"spec": "star:n_hosts=4"}}, "topo check FILE"),
    "named.json": (
        {"topology": {"name": "rail_optimized", "machines": 2, "hosts_per_group": 2, "preset": "dgx-h100"}},
        "topo show FILE",
    ),
    "jobs_of_run.json": (
        {
            "job": [{"name": "a", "collective": "ring_all_reduce", "ranks": "0-1", "size": "4KiB"}],
            "background": [{"kind": "poisson", "load": 0.1, "size": "1KiB", "until": "1us"}],
        },
        f"run --topology {STAR} --jobs FILE",
    ),
    "transports_of_jobs.json": (
        {"job": [
            {"name": "a", "collective": "ring_all_reduce", "ranks": "0-1", "size": "4KiB", "transport": "swift"},
            {"name": "b", "collective": "ring_all_reduce", "ranks": "2-3", "size": "4KiB"},
        ]},
        f"run --topology {STAR} --jobs FILE --engine packet --transport dctcp --balancing mixed",
    ),
    "sweep.json": (
        {
            "topology": {"name": "star", "n_hosts": 4, "routing": "ecmp"},
            "collective": {"name": "ring_all_reduce", "ranks": 2, "size": "1KiB"},
            "placement": {"strategy": "packed"}, "engine": {"name": "flow", "overhead": "1us"},
        },
        "sweep run FILE -o out --jobs 1 --executor serial",
    ),
    "program.json": (
        {"topology": {"name": "star", "n_hosts": 4}, "workload": {"program": "python none.py", "ranks": 2}},
        "sweep run FILE -o out --jobs 1 --executor serial",
    ),
    "training.json": (
        {
            "topology": {"name": "star", "n_hosts": 4},
            "workload": {
                "trace": f"{INPUTS}/gradients.csv", "workers": 2, "policy": "ddp", "all_reduce": "ring_all_reduce",
            },
        },
        "sweep run FILE -o out --jobs 1 --executor serial",
    ),
    "cost.json": (tomllib.loads((INPUTS / "cost.toml").read_text()) | {"case": [{"topology": {
        "name": "star", "n_hosts": 16, "bandwidth": "100Gbps"}}]}, "sweep cheapest FILE --jobs 1"),
    "graph.json": (
        tomllib.loads((INPUTS / "graph.toml").read_text()), f"workload run --graph FILE --topology {STAR}",
    ),
    "cluster.json": (
        tomllib.loads((INPUTS / "share_cluster.toml").read_text()),
        "place rank FILE job.json --candidates 1",
    ),
    "jobs.json": (
        json.loads((INPUTS / "jobs.json").read_text()), f"place rank {INPUTS}/cluster.toml FILE --candidates 1",
    ),
    "placed.json": (
        json.loads((INPUTS / "placed.json").read_text()),
        f"workload share {INPUTS}/share_cluster.toml FILE --iterations 2",
    ),
    "machines.json": (
        tomllib.loads((INPUTS / "share_cluster.toml").read_text()),
        "cluster run FILE --trace poisson:jobs=2,load=0.5,mean_gpus=2 --policy fifo",
    ),
    "demand.json": (
        json.loads((INPUTS / "demand.json").read_text()),
        f"place rank {INPUTS}/share_cluster.toml FILE --candidates 1",
    ),
    "hosts.json": (tomllib.loads((INPUTS / "gpu_hosts.toml").read_text()), "run --topology FILE -b 1K -e 1K"),
    "places.json": (
        json.loads((INPUTS / "places.json").read_text()), f"run --topology {STAR} --placement FILE -b 1K -e 1K",
    ),
    "lldp.json": (LLDP, "topo show FILE"),
    "netbox.json": (NETBOX, "topo show FILE:rate=10Gbps"),
    "kube_nodes.json": (
        json.loads((INPUTS / "kube_nodes.json").read_text()),
        "place import FILE --from kube-nodes --tier-bandwidth 1=100Gbps,2=2:1 -o n.toml",
    ),
    "record.json": (json.loads((INPUTS / "inspector.log").read_text().splitlines()[0]), "compare FILE FILE"),
}  # fmt: skip
SLOW = (
    "cost.json",
    "result.json",
    "again.json",
    "lldp.json",
    "netbox.json",
    "demand.json",
    "graph.infragraph.json",
    "graph.json",
    "jobs.json",
    "kube_nodes.json",
    "placed.json",
)  # what they have computed for each field
# Files that a command writes, and what reads each.
MADE = {
    "result.json": (f"run ring_all_reduce --topology {STAR} -b 4K -e 4K --json FILE", "report FILE -o out.html"),
    "again.json": (f"run ring_all_reduce --topology {STAR} -b 4K -e 4K --json FILE", "diff FILE FILE"),
    "plan.json": (f"topo save {STAR} -o FILE", "topo show FILE"),
    "graph.infragraph.json": ("topo export star:n_hosts=3 -o FILE", "topo show FILE"),
    "model.json": (
        "export cost-model star:n_hosts=2 --operation all_reduce --points 9 -e 1K --jobs 1 -o FILE",
        "export page FILE -o p.html",
    ),
}  # fmt: skip


def texts(own):
    """Return what a field may say to have a file executed."""
    return (own, f"{own}:x", f"dgx-h100@{own}:x", f"python {own}")


def variants(tree, own):
    """Return a tree with one field, or one key, that names the file: each in turn, with what was put there."""
    for path in paths(tree):
        for text in texts(own):
            yield put(tree, path, text), text
    for path in (path for path in [(), *paths(tree, leaves=False)] if isinstance(at(tree, path), dict)):
        for key in (f"n_gpus=1@{own}:a:x", f"{own}:x", own):
            for value in (1, "x"):
                yield put(tree, (*path, key), value), key
        if "name" in at(tree, path):
            folder, file = os.path.split(own)
            yield put(put(tree, (*path, "name"), folder), (*path, f"{file}:x"), 1), own


def paths(tree, leaves=True, before=()):
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inside:
        is_leaf = not isinstance(value, (dict, list))
        if is_leaf == leaves or (leaves and isinstance(value, list)):
            yield (*before, key)
        yield from paths(value, leaves, (*before, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def put(tree, path, value):
    tree = copy.deepcopy(tree)
    at(tree, path[:-1])[path[-1]] = value
    return tree


@pytest.fixture
def own(tmp_path, monkeypatch, forgets):
    monkeypatch.chdir(tmp_path)
    forgets(COLLECTIVES, TOPOLOGIES)
    Path("own.py").write_text(CODE)
    Path("job.json").write_text(json.dumps([row("a", 2)]))
    yield "./own.py"
    assert not Path("ran").exists()


def read(name, tree, line):
    Path(name).write_text(json.dumps(tree))
    return attempt(line.replace("FILE", name).split(), "code in data")


def each(names):
    """Return names with how many of the tries in a row one is made of: a third reach each field once or twice."""
    quick = [(name, 1) for name in names if name not in SLOW]
    long = [name for name in names if name in SLOW]
    thirds = [pytest.param(name, 3, marks=pytest.mark.slow) for name in long]
    return [*quick, *thirds, *(pytest.param(name, 1, marks=pytest.mark.deep) for name in long)]


@pytest.mark.parametrize(("name", "step"), each(READERS))
def test_no_field_of_a_file_executes_code(name, step, own, capsys):
    right, line = READERS[name]
    Path(name).write_text(json.dumps(right))
    assert main(line.replace("FILE", name).split()) == (2 if name == "program.json" else 0)
    tried = 0
    for tree, text in itertools.islice(variants(right, own), 0, None, step):
        assert not read(name, tree, line)
        assert not Path("ran").exists(), (text, tree)
        tried += 1
    assert tried >= 10


@pytest.mark.parametrize(("name", "step"), each(MADE))
def test_no_field_of_a_result_executes_code(name, step, own):
    make, line = MADE[name]
    assert main(make.replace("FILE", name).split()) == 0
    for tree, text in itertools.islice(variants(json.loads(Path(name).read_text()), own), 0, None, step):
        assert not read(name, tree, line)
        assert not Path("ran").exists(), (text, tree)


NAMES = [
    ("network.json", "topology", {"spec": "./own.py:x"}), ("network.json", "topology", {"spec": "./own.py"}),
    ("network.json", "topology", {"spec": "dgx-h100@./own.py"}), ("network.json", "topology", {"name": "./own.py"}),
    ("network.json", "topology", {"name": "./own.py", "n": 1}), ("jobs_of_run.json", "job.0.collective", "./own.py:x"),
    ("sweep.json", "topology.name", "./own.py:x"), ("sweep.json", "topology.name", ["star", "dgx-h100@./own.py"]),
    ("sweep.json", "collective.name", "./own.py"), ("sweep.json", "placement.strategy", "./own.py"),
    ("training.json", "workload.policy", "./own.py:x"), ("training.json", "workload.all_reduce", "./own.py"),
    ("program.json", "workload.program", "python own.py"), ("program.json", "workload.program", "./own.py"),
    ("program.json", "workload.program", "python -c 'open(0)'"), ("program.json", "workload.program", "sh -c true"),
    ("cost.json", "case.0.topology.name", "./own.py:x"), ("cluster.json", "topology", {"spec": "./own.py"}),
    ("machines.json", "topology", {"spec": "./own.py:x"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "field", "value"), NAMES)
def test_code_is_refused_in_one_line_where_a_name_could_be_code(name, field, value, own, capsys):
    tree, line = READERS[name]
    path = [int(key) if key.isdigit() else key for key in field.split(".")]
    Path(name).write_text(json.dumps(put(tree, path, value)))
    assert main(line.replace("FILE", name).split()) == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1
    assert any(words in said for words in REFUSED.split("|")), said


@pytest.mark.parametrize("key", ["n_nics=1@./own.py:a:x", "own.py:x", "n hosts", "", "a" * 100_000, "n_gpus\n", "é!"])
def test_a_parameter_s_name_is_an_identifier(key, own):
    with pytest.raises(InputError, match=r"has no parameter '.{0,61}(;|: a)"):
        commsim.read_cluster({"topology": {"name": "pcie_host", key: 1}, "hosts": {"gpus": 1}})


REQUESTS = {
    ("POST", "/cluster"): {
        "topology": {"name": "rail_optimized", "machines": 2, "hosts_per_group": 2, "preset": "dgx-h100"},
        "hosts": {"busy": {"m0.gpu0": 1}},
    },
    ("POST", "/jobs"): {"jobs": [row("new", 1, placement=["h0"])]},
    ("POST", "/place"): {
        "jobs": [row("other", 1), "old"], "candidates": 1, "generators": ["packed"], "rank_by": "mean",
        "fail": ["links:1%"], "scale": ["link:leaf0:spine0=0.5"],
    },
    ("POST", "/filter"): {"Pod": pod(row("pod", 1)), "NodeNames": ["h0"]},
    ("POST", "/prioritize"): {"Pod": pod("old", 1, labels={"job-name": "old"}), "Nodes": {"items": [
        {"metadata": {"name": "h0"}}]}},
}  # fmt: skip


@pytest.mark.parametrize("route", REQUESTS, ids="".join)
def test_no_field_of_a_request_executes_code_or_reads_a_file(route, own):
    """A file that is read would be found by its mark, too: it is a network whose nodes have that name."""
    Path("net.toml").write_text('schema = 1\n[topology]\nspec = "star:n_hosts=2"\n')
    with running() as service:
        assert service.ask("POST", "/jobs", {"jobs": [row("old", 1)]})[0] == 200
        status, answer = service.ask(*route, REQUESTS[route])
        assert status == 200 or route[1] == "/cluster", answer
        for tree, text in variants(REQUESTS[route], own):
            status, answer = service.ask(*route, tree)
            assert status == 200 or (400 <= status < 500 and len(answer["error"].splitlines()) == 1), (status, text)
            assert not Path("ran").exists(), (text, tree)
        for name in (own.removeprefix("./"), "own.py:x", "net.toml"):
            assert service.ask("DELETE", f"/jobs/{name}")[0] == 404


@pytest.mark.parametrize("topology", [
    {"name": "pcie_host", "n_nics=1@./own.py:a:x": 1}, {"name": "./", "own.py:x": 1}, {"name": "own", "py:x": 1},
    {"name": "pcie_host", "n_nics=1@net.toml": 1}, {"name": "pcie_host", "n_gpus": "1@net.toml"}, {"spec": "net.toml"},
    {"spec": "pcie_host:n_gpus=1,n_nics=1@net.toml"}, {"spec": "own.py:x"}, {"file": "net.toml"}, {"spec": "smi.txt"},
    {"spec": "smi.txt@star:machines=2"}, {"name": "rail_optimized", "machines": 2, "preset": "net.toml"},
])  # fmt: skip
def test_a_posted_cluster_reaches_no_file(topology, own):
    Path("net.toml").write_text('schema = 1\n[topology]\nspec = "star:n_hosts=2"\n')
    Path("smi.txt").write_text((INPUTS / "smi.txt").read_text())
    with running(None) as service:
        status, answer = service.ask("POST", "/cluster", {"topology": topology, "hosts": {"gpus": 1}})
    assert status == 400
    assert len(answer["error"].splitlines()) == 1


def test_flags_and_callers_of_python_execute_what_they_name(own, capsys):
    Path("line.py").write_text(example("topologies.md"))
    assert main(["topo", "show", "./line.py:n_hosts=3"]) == 0
    assert main(["--only-code=", "topo", "show", "./line.py:n_hosts=3"]) == 2
    assert main(["--only-code=line.py", "topo", "show", "./line.py:n_hosts=3"]) == 0
    assert commsim.load_network(OwnFile("line.py:n_hosts=3")).n_nodes == 6
    Path("four.py").write_text(
        example("topologies.md").replace("n_hosts: int", "n_hosts: int = 4").replace("def line", "def four")
    )
    assert commsim.load_network(Path("four.py")).n_nodes == 8
    for text in ("line.py:n_hosts=3", f"{OwnFile('line.py')}:n_hosts=3", OwnFile("line.py") + ":n_hosts=3"):
        with pytest.raises(InputError, match=r"line.py: a data file cannot .* in Python as cs\.OwnFile\(\"line.py:n_"):
            commsim.load_network(text)
    assert isinstance(derived(OwnFile("a.py@b"), "b"), OwnFile)
    assert not isinstance(derived("a.py@b", "b"), OwnFile)


def example(page):
    blocks = (ROOT / "docs" / page).read_text().split("```python\n")[1:]
    return next(block for block in blocks if "@topology" in block).partition("```")[0]


def test_a_sweep_executes_what_a_flag_allows(own, tmp_path, capsys):
    Path("line.py").write_text(example("topologies.md"))
    tree = READERS["sweep.json"][0] | {"topology": {"name": "./line.py", "n_hosts": 4}}
    Path("sweep.json").write_text(json.dumps(tree))
    assert main(["sweep", "plan", "sweep.json", "--jobs", "1", "--allow-code", "own.py"]) == 2
    assert "--allow-code" in capsys.readouterr().err
    assert main(["sweep", "run", "sweep.json", "-o", "out", "--jobs", "2", "--allow-code", "line.py"]) == 0
    said = capsys.readouterr().out
    assert "1 point" in said
    assert "failed" not in said
    values = {axis.name: axis.values for axis in read_config(tree, ["line.py"]).cases[0].axes}
    assert isinstance(values["topology.name"][0], OwnFile)
    assert not isinstance(values["collective.name"][0], OwnFile)


def calls_in(package, wanted):
    """Return the files with a call of a name, or of an attribute of that name."""
    found = {}
    for path in (ROOT / package).rglob("*.py"):
        text = path.read_text()
        named = any(f"{name.rpartition('.')[2]}(" in text for name in wanted)  # as ruff writes it: most name none
        for node in ast.walk(ast.parse(text)) if named else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) in wanted:
                found.setdefault(str(path.relative_to(ROOT)), set()).add(ast.unparse(node.func))
    return found


def test_code_is_executed_and_allowed_in_few_places():
    """A new place is a way to code: docs/trust.md has them."""
    packages = ("commsim", "collectives", "topologies", "switch_model")
    execute = {"exec", "eval", "runpy.run_path", "runpy.run_module", "importlib.util.spec_from_file_location"}
    found = {path for package in packages for path in calls_in(package, execute)}
    assert found == {
        "commsim/core/files/own_files.py",  # FILE.py of a flag
        "commsim/profile_mpi.py", "commsim/emulation/programs.py", "commsim/emulation/alike/script.py",
    }  # fmt: skip
    made = {path for package in packages for path in calls_in(package, {"OwnFile"})}
    assert made == {
        "commsim/core/spec.py", "commsim/core/files/own_files.py",  # of what is one, or with a list of files
        "commsim/cli/flags/__init__.py", "commsim/prediction/inputs.py",  # what flags say, and paths of callers
    }  # fmt: skip
    with pytest.raises(InputError, match="cannot execute"), contextlib.redirect_stdout(io.StringIO()):
        own_entry(commsim.COLLECTIVES, f"{Path(__file__).with_name('own.py')}:x")
    assert sys.flags.optimize < 1
