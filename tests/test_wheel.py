"""The wheel by itself: without extras, in an environment that has nothing else; and the examples that it brings."""

import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackagePath, PathDistribution, distribution
from pathlib import Path

import pytest
from built_distribution import built

import commsim as cs
from commsim.cli import main
from commsim.cli.examples import example_files
from commsim.core.extras import EXTRAS, told_extra
from commsim.formats.chakra.codec import _messages
from commsim.formats.chakra.trace_file import read_trace
from commsim.formats.context import Context
from commsim.formats.convert import convert
from commsim.sweep.table import read_table

ROOT = Path(cs.__file__).parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = CONFIG["project"]
# Lines of README and of a first hour, and the extra that each needs.
LINES = {
    "--help": "",
    "run ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M": "",
    "nccl --topology dgx-h100@star:machines=2 --operation all_reduce": "",
    "topo show fat_tree:k=4": "",
    "topo check star:n_hosts=4": "",
    "examples": "",
    "place examples/cluster.toml examples/jobs.json --help": "",
    "synthesize --operation all_reduce --topology dgx-h100": "opt",
    "run ring_all_reduce --topology star:n_hosts=4 -b 1M --report page.html": "report",
    "run ring_all_reduce --topology star:n_hosts=4 -b 1M --draw network.png": "plot",
    "topo export star:n_hosts=4 -o network.graphml": "graph",
    "testbed run --network star:n_hosts=2 --collective ring_all_reduce -b 1M -e 1M": "testbed",
}


def test_every_extra_names_a_library_that_it_installs():
    extras = PROJECT["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(extras)
    without = {"mpi", "all", "graph", "mpich"} - set(EXTRAS.values())
    assert set(extras) - set(EXTRAS.values()) == without
    assert told_extra("scipy.optimize") == "scipy is missing: pip install 'commsim[opt]'"
    assert told_extra("networkx") == "networkx is missing: pip install 'commsim[graph]'"
    assert told_extra("no_such") == ""


def test_a_missing_library_is_one_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert main(["synthesize", "--operation", "all_reduce", "--topology", "dgx-h100"]) == 2
    assert capsys.readouterr().err == "commsim synthesize: error: scipy is missing: pip install 'commsim[opt]'\n"


ASTRA = "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 100.0 ]\nlatency: [ 500.0 ]\n"
# What needs an extra, as a script asks for it.
OF_SCRIPTS = {
    "synthesize": lambda _: cs.synthesize("all_gather", "star:n_hosts=4", "1MiB"),
    "rank": lambda _: cs.rank("all_reduce", "dgx-h100", "1MiB", synthesized=True),
    "to_networkx": lambda _: cs.to_networkx("star:n_hosts=4"),
    "load_network": lambda folder: cs.load_network(str(folder / "astra.yml")),
    "write_report": lambda folder: cs.write_report(cs.predict("ring_all_reduce", "dgx-h100", 1), folder / "page.html"),
    "timeline": lambda _: cs.predict("ring_all_reduce", "dgx-h100", 1).timeline(),
    "plot": lambda _: cs.predict("ring_all_reduce", "dgx-h100", 1).plot(),
    "graphml": lambda folder: convert("star:n_hosts=4", str(folder / "x.graphml"), Context()),
    "chakra": lambda folder: convert("ring_all_reduce", str(folder / "x.et"), Context(n_ranks=4, size=4096)),
    "trace": lambda folder: read_trace(folder / "trace.0.et"),
    "table": lambda folder: read_table(folder),
}


@pytest.mark.parametrize("name", OF_SCRIPTS)
def test_a_script_gets_one_family_of_errors_where_a_library_is_missing(tmp_path, monkeypatch, name):
    (tmp_path / "astra.yml").write_text(ASTRA)
    (tmp_path / "trace.0.et").write_bytes(b"\x07\x0a\x051.0.0")
    _messages.cache_clear()
    for module in {*EXTRAS, "polars"} | {one for one in sys.modules if one.partition(".")[0] in {*EXTRAS, "polars"}}:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(cs.CommsimError, match=r"pip install 'commsim\[\w+\]'") as refused:
        OF_SCRIPTS[name](tmp_path)
    assert "does not fit" not in str(refused.value)


def test_examples_are_found_where_pip_puts_them_for_a_target(tmp_path, monkeypatch):
    """`pip install --target DIR` moves share/ into DIR, and keeps the place of an environment in the record."""
    name = "share/commsim/examples/cluster.toml"
    (tmp_path / "share/commsim/examples").mkdir(parents=True)
    (tmp_path / name).write_text("of the target")
    record = PackagePath(f"../../{name}")
    record.dist = PathDistribution(tmp_path / "target" / "commsim.dist-info")
    monkeypatch.setattr(cs, "__file__", str(tmp_path / "commsim" / "__init__.py"))
    monkeypatch.setattr("importlib.metadata.files", lambda _: [record])
    assert list(example_files()) == [("cluster.toml", b"of the target")]


def test_examples_are_written_into_a_new_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["examples"]) == 0
    assert (tmp_path / "examples" / "cluster.toml").read_bytes() == (ROOT / "examples" / "cluster.toml").read_bytes()
    assert main(["examples"]) == 2
    assert "is there already" in capsys.readouterr().err


def test_every_example_is_data_of_the_wheel():
    patterns = [one for listed in CONFIG["tool"]["setuptools"]["data-files"].values() for one in listed]
    shipped = {path for pattern in patterns for path in ROOT.glob(pattern)}
    every = {path for path in (ROOT / "examples").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert every == shipped


def test_the_version_is_the_same_everywhere():
    spec = importlib.util.spec_from_file_location("version", ROOT / "packaging" / "version.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert set(module.versions().values()) == {cs.__version__}


def test_no_link_of_a_built_readme_is_relative():
    links = runpy.run_path(str(ROOT / "packaging" / "index_links.py"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    made = links["with_index_links"](text, "README.md", "https://host/owner/name", "v9.9.9")
    target = re.compile(r"\]\(([^()\s]*)\)")
    assert len(target.findall(text)) == len(target.findall(made)) > 20
    assert not [one for one in target.findall(made) if not one.startswith("https://")]
    assert "](https://host/owner/name/blob/v9.9.9/docs/tutorial.md)" in made
    assert re.search(r"!\[[^]]*\]\(https://host/owner/name/raw/v9.9.9/docs/\w+.svg\)", made)
    assert "](https://host/owner/name/blob/v9.9.9/README.md#more-questions)" in made
    assert links["with_index_links"](made, "README.md", "https://other", "v1") == made
    of_files, variables = {"Source": "https://a/b"}, {"GITHUB_SERVER_URL": "https://c", "GITHUB_REPOSITORY": "d/e"}
    asked = [links["address_of"](*given) for given in ((of_files, variables), ({}, variables), ({}, {}))]
    assert asked == ["https://a/b", "https://c/d/e", ""]


@pytest.mark.parametrize("address", ["", "https://host/owner/name"])
def test_a_build_by_hand_has_no_dead_link(tmp_path, monkeypatch, address):
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "packaging/index_links.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    server, _, repository = address.partition("/owner/")
    monkeypatch.setenv("GITHUB_SERVER_URL", server)
    monkeypatch.setenv("GITHUB_REPOSITORY", repository and f"owner/{repository}")
    (tmp_path / "made").mkdir()
    program = "import setuptools.build_meta as backend; backend.prepare_metadata_for_build_wheel('made')"
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=tmp_path)
    (made,) = (tmp_path / "made").glob("*/METADATA")
    targets = re.findall(r"\]\(([^()\s]*)\)", made.read_text(encoding="utf-8"))
    assert bool(targets) == bool(address)
    assert all(one.startswith((f"{address}/blob/v{cs.__version__}/", f"{address}/raw/")) for one in targets)
    assert "tutorial" in made.read_text(encoding="utf-8")


def test_lines_of_the_readme_that_the_release_runs_read_files_that_the_wheel_brings():
    module = runpy.run_path(str(ROOT / "packaging" / "check_wheel.py"))
    lines = [one for one in module["readme_lines"]() if not any(part in one for part in module["LEFT_OUT"])]
    read = {
        name for line in lines for name in re.findall(r"(?<!-o )(?<!--json )(?<=[ ])[\w/.-]+\.(?:toml|json|py)\b", line)
    }
    assert read
    assert not [name for name in read if not (ROOT / name).is_file() or not name.startswith("examples/")]


def test_workflows_name_what_is_there():
    text = "".join(path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    assert all((ROOT / name).is_file() for name in re.findall(r"python (packaging/\w+\.py)", text))
    pythons = set(re.findall(r'"(3\.\d+)"', text))
    named = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r"3\.\d+$", one)}
    assert named == pythons


def test_workflows_make_what_the_makefile_has_and_the_deep_tests_once_a_week():
    made = {}
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        lines = re.findall(r"(?:make|\.ci/run) ((?:[a-z-]+ ?)+)", re.sub("#.*", "", path.read_text()))
        made[path.stem] = {target for line in lines for target in line.split()}
    assert set().union(*made.values()) <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert made["deep"] == {"deep"}
    assert "schedule:\n    - cron:" in (ROOT / ".github" / "workflows" / "deep.yml").read_text()


def needed(names):
    """Distributions that some need, and what these need, without extras."""
    found, waiting = {}, list(names)
    while waiting:
        name = re.match(r"[\w.-]+", waiting.pop())[0]
        if name not in found:
            found[name] = distribution(name)
            waiting += [one for one in found[name].requires or () if "extra ==" not in one]
    return found.values()


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """An environment with the wheel and the libraries that it requires, and no others; its folder of programs."""
    folder = tmp_path_factory.mktemp("empty")
    wheel = built("wheel", ROOT, folder / "dist")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    line = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(line, check=True, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    for one in needed(PROJECT["dependencies"]):
        tops = {file.parts[0] for file in one.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(one.locate_file(top))))
    return folder / "venv" / "bin"


@pytest.mark.deep
@pytest.mark.slow
def test_the_wheel_alone_answers_or_names_its_extra(empty, tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for line, extra in LINES.items():
        words = [empty / "commsim", *line.split()]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
        assert done.returncode == (2 if extra else 0), (line, done.stderr)
        if extra:
            said = done.stderr.strip()
            assert "commsim[" in said, line
            assert "\n" not in said, line
    assert tomllib.loads((tmp_path / "examples" / "cluster.toml").read_text())
