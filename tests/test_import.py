import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import commsim

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
