"""Recipes for containers, conda and Spack ask for what pyproject.toml asks for; sdist and wheel hold what is read."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from built_distribution import built

import commsim

ROOT = Path(commsim.__file__).parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = CONFIG["project"]
PACKAGES = [one.removesuffix("*") for one in CONFIG["tool"]["setuptools"]["packages"]["find"]["include"]]
NEEDED = {re.split(r">=", one)[0]: re.split(r">=", one)[1] for one in PROJECT["dependencies"]}


def test_the_conda_recipe_has_version_and_dependencies():
    text = (ROOT / "packaging" / "conda" / "meta.yaml").read_text()
    assert f'version = "{commsim.__version__}"' in text
    run = text.split("  run:\n")[1].split("\n\n")[0]
    found = dict(re.findall(r"- ([\w-]+) >=(\S+)", run))
    assert found == NEEDED | {"python": PROJECT["requires-python"].removeprefix(">=")}
    script = next(iter(PROJECT["scripts"].items()))
    assert f"- {script[0]} = {script[1]}" in text


def test_the_spack_package_has_version_and_dependencies():
    text = (ROOT / "packaging" / "spack" / "package.py").read_text()
    ast.parse(text)
    assert f'version("{commsim.__version__}")' in text
    ranges = re.findall(r'depends_on\("py-([\w-]+)@([\d.]+):([\d.]*)", type=\("build", "run"\)\)', text)
    assert {name: floor + below(last) for name, floor, last in ranges} == NEEDED


def below(last):
    """Write the last minor version that Spack takes as the first one that pip does not."""
    major, _, minor = last.partition(".")
    return f",<{major}.{int(minor) + 1}" if last else ""


def test_the_container_copies_every_package_that_is_shipped():
    text = (ROOT / "Dockerfile").read_text()
    for name in PACKAGES:
        assert f"COPY {name} {name}\n" in text
    copied = re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE)
    assert all((ROOT / name).exists() for line in copied for name in line.split())


def not_shipped(data: dict[str, list[str]]) -> list[str]:
    """Files of the packages that are no modules, and that no pattern of their package's data names."""
    found = {path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file()}
    read = {path for path in found if path.suffix not in (".py", ".pyc")}
    for package, patterns in data.items():
        folders = [ROOT / package.replace(".", "/")] if package != "*" else {path.parent for path in found}
        read -= {path for folder in folders for pattern in patterns for path in folder.glob(pattern)}
    return sorted(str(path.relative_to(ROOT)) for path in read)


def test_every_file_beside_the_modules_is_data_of_a_package():
    """What a wheel would lack, without building one, which `make test-all` does."""
    data = CONFIG["tool"]["setuptools"]["package-data"]
    assert not_shipped(data) == []
    without_schemas = {name: patterns for name, patterns in data.items() if name != "commsim.cli"}
    assert "commsim/cli/schemas/run.json" in not_shipped(without_schemas)


@pytest.mark.deep
@pytest.mark.slow
def test_sdist_and_wheel_hold_what_the_program_reads(tmp_path):
    tree = tmp_path / "tree"
    rest = ("tests", "benchmarks")
    for name in (*PACKAGES, *rest):  # a copy, so that nothing of an earlier build gets in
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "constraints.txt", "Makefile", "CHANGES.md"):
        shutil.copy(ROOT / name, tree)
    # Debian's Python 3.11.2 has no filter= of extractall(), which later ones want
    archive = built("sdist", tree, tmp_path / "sdist")
    subprocess.run([sys.executable, "-m", "tarfile", "-e", str(archive), str(tmp_path)], check=True)
    source = tmp_path / f"commsim-{commsim.__version__}"
    assert all((source / name).is_file() for name in ("LICENSE", "Makefile", "CHANGES.md", "tests/test_packaging.py"))
    # the wheel is made of the sdist, as pip makes it where no wheel fits: what either leaves out is missing below
    made = built("wheel", source, tmp_path / "wheel")
    wheel = zipfile.ZipFile(made)
    names = set(wheel.namelist())
    data = [path for path in ROOT.glob("commsim/**/*") if path.suffix in (".json", ".toml", ".html", ".css", ".js")]
    assert {str(path.relative_to(ROOT)) for path in data} <= names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)
    wheel.extractall(tmp_path / "unpacked")  # it answers by itself, away from the tree
    where = f"import sys; sys.path.insert(0, {str(tmp_path / 'unpacked')!r})"
    program = f"{where}; from commsim.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["run", "ring_all_reduce", "--topology", "star:n_hosts=4", "--json", "-"]
    line = [sys.executable, "-P", "-c", program, *words]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
    assert '"schema": 1' in done.stdout, done.stderr
