import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import commsim
from commsim._siblings import SIBLINGS

ROOT = Path(commsim.__file__).parent.parent
HEAVY = ("numba", "torch", "mpi4py", "scapy", "scipy", "rich", "matplotlib", "networkx", "vl_convert")


def loaded_after(code: str) -> set[str]:
    """Heavy modules that a new process has loaded when `code` has run."""
    check = f"{code}\nimport sys\nprint(*(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], text=True, capture_output=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import commsim",
        "import commsim\ncommsim.load_network('fat_tree:k=4')",
        "import commsim\nlist(commsim.TOPOLOGIES), list(commsim.COLLECTIVES)",
        "import commsim\ncommsim.Network, commsim.Schedule, commsim.Program, commsim.Placement, commsim.Result",
        "import commsim\ncommsim.place, commsim.save, commsim.parse_size",
    ],
)
def test_importing_and_describing_load_nothing_heavy(code):
    assert loaded_after(code) == set()


def test_the_package_loads_nothing_before_the_command_catches_ctrl_c():
    """What is imported before `commsim.__main__` shows a traceback of Python when Ctrl-C comes."""
    code = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nbefore = set(sys.modules)\nimport commsim\n"
    code += "print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-S", "-c", code], text=True, capture_output=True, check=True)
    assert set(done.stdout.split()).isdisjoint(
        ("typing", "pathlib", "re", "enum", "functools", "importlib", "warnings")
    )


@pytest.mark.parametrize("order", ["import collectives, commsim", "import topologies, commsim", "import switch_model"])
def test_the_packages_may_be_imported_in_any_order(order):
    assert loaded_after(f"{order}\nimport commsim\ncommsim.COLLECTIVES, commsim.TOPOLOGIES") == set()


@pytest.mark.parametrize("name", commsim.__all__)
def test_every_public_name_is_there(name):
    assert getattr(commsim, name) is not None
    assert name in dir(commsim)


def test_the_names_that_type_checkers_see_are_those_that_exist():
    lines = Path(commsim.__file__).read_text().splitlines()
    seen = {line.split(" as ")[1] for line in lines if line.startswith("    from ") and " as " in line}
    assert seen == set(commsim.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'commsim' has no attribute 'nothing'"):
        _ = commsim.nothing


def test_the_version_is_that_of_the_distribution():
    assert commsim.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a new process whose first folder on the path is `folder`, and whose last is ours."""
    paths = f"import sys; sys.path[:0] = [{str(folder)!r}]; sys.path.append({str(ROOT)!r})\n"
    return subprocess.run([sys.executable, "-c", paths + code], cwd=folder, text=True, capture_output=True)


SHAPES = ["{}.py", "{}/__init__.py"]
NAMES = (*SIBLINGS, "benchmarks")


def beside(folder: Path, shape: str) -> None:
    """Write a user's own files or folders of our names, which know a name that ours do not."""
    for name in NAMES:
        file = folder / shape.format(name)
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine = 42\n")


USE = "assert cs.load_network('star:n_hosts=2').n_links == 4\nassert 'ring_all_reduce' in cs.COLLECTIVES\n"


@pytest.mark.sample(4)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "imports",
    [
        "import commsim as cs\n",
        "import collectives, topologies, switch_model\nimport commsim as cs\n",
        "import commsim as cs\nimport collectives, topologies, switch_model\n",
        "from collectives import mine\nimport commsim as cs\nfrom topologies import mine\n",
    ],
)
def test_a_script_beside_files_of_our_names_uses_ours_and_its_own(tmp_path, shape, imports):
    beside(tmp_path, shape)
    used = [name for name in SIBLINGS if f"{name}," in imports or f", {name}" in imports]
    own = "".join(f"assert {name}.mine == 42\n" for name in used)
    done = run(f"{imports}{USE}{own}from topologies import TOPOLOGIES\nassert TOPOLOGIES is cs.TOPOLOGIES", tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", ["cs.TOPOLOGIES", "cs.COLLECTIVES", "__import__('commsim.prediction.inputs')"])
def test_whatever_is_used_first_finds_ours(tmp_path, first):
    beside(tmp_path, "{}.py")
    done = run(f"import commsim as cs\nimport collectives, topologies\n{first}\n{USE}", tmp_path)
    assert done.returncode == 0, done.stderr


def test_submodules_of_a_folder_of_our_name_are_set_aside_with_it(tmp_path):
    beside(tmp_path, "{}/__init__.py")
    (tmp_path / "collectives" / "dense.py").write_text("")
    done = run(f"import collectives.dense\nimport commsim as cs\n{USE}", tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_folder_of_data_is_no_package(tmp_path):
    (tmp_path / "collectives").mkdir()
    done = run(f"import commsim as cs\n{USE}", tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_package_that_is_missing_is_named(tmp_path):
    copy = tmp_path / "commsim"
    copy.mkdir()
    for name in ("__init__.py", "_siblings.py"):
        (copy / name).write_text((ROOT / "commsim" / name).read_text())
    done = run("import commsim\ncommsim.TOPOLOGIES", tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: commsim needs its own package topologies")
    assert str(tmp_path / "topologies" / "__init__.py") in last


@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("start", [["-m", "commsim"], ["bin/commsim"]])
def test_the_command_line_runs_beside_files_of_the_same_names(tmp_path, shape, start):
    beside(tmp_path, shape)
    (tmp_path / "bin").mkdir()  # as the script that pip makes
    (tmp_path / "bin" / "commsim").write_text("from commsim.__main__ import run\nrun()\n")
    command = [sys.executable, *start, "topo", "show", "star:n_hosts=2"]
    paths = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run(command, cwd=tmp_path, env=paths, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "star:n_hosts=2" in done.stdout


SCRIPT = """
from pathlib import Path

import commsim as cs
import topologies

if __name__ == "__main__":
    sweep = {"topology": {"name": "star", "n_hosts": 4},
             "collective": {"name": "ring_all_reduce", "ranks": 4, "size": ["1MiB", "2MiB"]}}
    done = cs.run_sweep(sweep, Path(__file__).with_name("results"), "process", jobs=2)
    print(done.n_done, done.n_failed, topologies.mine)
"""


def test_workers_of_a_sweep_run_beside_files_of_the_same_names(tmp_path):
    pytest.importorskip("pyarrow")
    beside(tmp_path, "{}.py")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    paths = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, env=paths, text=True, capture_output=True)
    assert done.stdout == "2 0 42\n", done.stderr


@pytest.mark.mpi
def test_a_script_under_mpiexec_runs_beside_files_of_the_same_names(tmp_path):
    beside(tmp_path, "{}/__init__.py")
    script = tmp_path / "script.py"
    whole_line = "os.write(1, f'right {topologies.mine}\\n'.encode())"  # an unbuffered print writes word by word
    script.write_text(f"import os\nimport topologies\nimport commsim as cs\n{USE}{whole_line}\n")
    from under_mpiexec import under_mpiexec  # of an extension

    done = under_mpiexec(2, str(script))
    assert done.stdout.count("right 42\n") == 2, done.stderr


def test_nothing_in_the_way_is_no_error(tmp_path):
    done = run("import commsim\nprint(commsim.load_network('star:n_hosts=2').n_links)", tmp_path)
    assert (done.stdout, done.returncode) == ("4\n", 0), done.stderr
