import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import commsim
from commsim import _siblings

ROOT = Path(commsim.__file__).parent.parent
HEAVY = ("numba", "torch", "mpi4py", "scapy", "scipy", "rich", "matplotlib", "networkx")


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
    assert seen | {"__version__"} == set(commsim.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'commsim' has no attribute 'nothing'"):
        _ = commsim.nothing


def test_the_version_is_that_of_the_distribution():
    assert commsim.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a new process whose first folder on the path is `folder`, and whose last is ours."""
    paths = f"import sys; sys.path[:0] = [{str(folder)!r}]; sys.path.append({str(ROOT)!r})\n"
    return subprocess.run([sys.executable, "-c", paths + code], cwd=folder, text=True, capture_output=True)


def put(folder: Path, sibling: str, shape: str) -> Path:
    """Write a user's module that has the name of one of our packages."""
    intruder = folder / shape.format(sibling)
    intruder.parent.mkdir(exist_ok=True)
    intruder.write_text("MINE = 42\n")
    return intruder


USED = "print(commsim.predict('ring_all_reduce', 'star:n_hosts=4', '1MiB', engine='alpha-beta').time > 0)"


@pytest.mark.parametrize("sibling", _siblings.SIBLINGS)
@pytest.mark.parametrize("shape", ["{}.py", "{}/__init__.py"])
def test_a_file_or_folder_of_the_same_name_does_not_hide_ours(tmp_path, sibling, shape):
    intruder = put(tmp_path, sibling, shape)
    done = run(f"import commsim\n{USED}", tmp_path)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
    assert f"{intruder} has the name of a package of commsim" in done.stderr
    assert done.stderr.count("UserWarning") == 1


@pytest.mark.parametrize("shape", ["{}.py", "{}/__init__.py"])
def test_a_module_that_was_imported_before_stays_with_who_has_it(tmp_path, shape):
    put(tmp_path, "topologies", shape)
    done = run(f"import topologies\nimport commsim\n{USED}\nprint(topologies.MINE)", tmp_path)
    assert (done.stdout, done.returncode) == ("True\n42\n", 0), done.stderr
    assert "rename yours" in done.stderr


def test_a_folder_of_data_is_no_package_and_nothing_is_said(tmp_path):
    (tmp_path / "collectives").mkdir()
    done = run(f"import commsim\n{USED}", tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


def test_parts_of_commsim_are_found_beside_such_a_file_too(tmp_path):
    put(tmp_path, "collectives", "{}.py")
    done = run("from commsim.run import prepare\nprint(prepare.__name__)", tmp_path)
    assert (done.stdout, done.returncode) == ("prepare\n", 0), done.stderr


@pytest.mark.parametrize("shape", ["{}.py", "{}/__init__.py"])
def test_the_command_line_runs_beside_files_of_the_same_names(tmp_path, shape):
    for sibling in _siblings.SIBLINGS:
        intruder = tmp_path / shape.format(sibling)
        intruder.parent.mkdir(exist_ok=True)
        intruder.write_text("")
    command = [sys.executable, "-m", "commsim", "topo", "show", "star:n_hosts=2"]
    paths = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=paths, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "star:n_hosts=2" in done.stdout


def test_nothing_in_the_way_is_no_error(tmp_path):
    done = run("import commsim\nprint(commsim.load_network('star:n_hosts=2').n_links)", tmp_path)
    assert (done.stdout, done.returncode) == ("4\n", 0), done.stderr
