"""Each mutation in a copy of the tree, and the tests of its area there."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.house.sources import ROOT, SHIPPED
from commsim.core.compiling.kernel_cache import cache_folder

from .mutations import Mutation, mutations

COPIED = (*SHIPPED, "benchmarks", "tests", "docs", "examples")
NO_TEST = 5  # pytest's exit status when it has collected none
# Wall time of a run of tests over the processor time that it may take: other processes use the cores, too.
WAITING = 6
# Of tests that pytest leaves out by itself those that are tried where no other one fails.
SLOW = "slow and not deep and not mpi and not needs_kernel"


@dataclass(frozen=True, slots=True)
class Area:
    """Code, and the tests that should notice its mutations.

    Parameters
    ----------
    code, tests : tuple of str
        Patterns of files, and files or folders, relative to the root of the repository. Empty `tests` means those
        that mention a mutated file, and those beside them.
    without : tuple of str
        Beginnings of paths of code and tests that belong to another area.
    """

    code: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()


AREAS = {
    "kernels": Area(tuple(f"{folder}/**/*_kernel.py" for folder in SHIPPED), ()),
    "routing": Area(("commsim/routing/**/*.py",), ("tests/routing",)),
    "placement": Area(("commsim/placement/**/*.py",), ("tests/placement",),
                      ("commsim/placement/service", "tests/placement/service")),
    "service": Area(("commsim/placement/service/**/*.py",),
                    ("tests/placement/service", "tests/hostile/test_requests.py")),
    "sweep": Area(("commsim/sweep/**/*.py",), ("tests/sweep",)),
    "engine": Area(("commsim/engine/**/*.py",), ("tests/engine",),
                   ("commsim/packets", "tests/packets")),
    "nccl": Area(("collectives/nccl/**/*.py", "commsim/nccl/**/*.py"), ("tests/nccl",)),
    "switch": Area(("switch_model/*.py", "switch_model/packets/**/*.py"), ("tests/switches",),
                   ("tests/live", "tests/live/bpf")),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of one mutation.

    Parameters
    ----------
    area : str
        Whose tests ran.
    mutation : str
        Place, old line and new line.
    outcome : str
        ``killed``, ``too long`` (a test did not end, which is a kill too) or ``survived``.
    by : str
        The test that failed.
    """

    area: str
    mutation: str
    outcome: str
    by: str = ""


def drawn(area: Area, times: int, seed: str) -> list[Mutation]:
    """Draw mutations of an area, all equally likely, each at most once."""
    found = {path.relative_to(ROOT) for pattern in area.code for path in ROOT.glob(pattern)}
    files = [path for path in sorted(found) if not str(path).startswith(area.without or "\0")]
    every = [one for path in files for one in mutations(path, (ROOT / path).read_bytes())]
    return random.Random(seed).sample(every, min(times, len(every)))


@contextmanager
def copied_tree() -> Iterator[Path]:
    """Make a copy of code and tests with a copy of the compiled kernels; both are deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        for one in COPIED:
            shutil.copytree(ROOT / one, folder / one, ignore=shutil.ignore_patterns("_build", "_site"))
        for file in ROOT.iterdir():
            if file.is_file():
                shutil.copy2(file, folder)
        kernels = cache_folder()
        (folder / "kernels").mkdir()
        if kernels.is_dir():
            shutil.copytree(kernels, folder / "kernels", dirs_exist_ok=True)
        yield folder


def tried(folder: Path, name: str, mutation: Mutation, seconds: float) -> Trial:
    """Run the tests that mention the mutated file, all of its area, and then slow ones, in a copy; restore the file.

    Parameters
    ----------
    folder : Path
        From :func:`copied_tree`.
    name : str
        Key of ``AREAS``.
    mutation : Mutation
        What to change.
    seconds : float
        Processor time of each of the three runs, at most, without that of processes that its tests start.
    """
    path = folder / mutation.path
    text = path.read_bytes()
    shown = mutation.shown(text)
    path.write_bytes(mutation.apply(text))
    try:
        near, area = _tests(folder, AREAS[name], mutation.path)
        for tests, marked in ((near, ""), (area, ""), ([*near, *area], SLOW)):
            if not tests:
                continue
            status, last = _tested(folder, tests, seconds, marked)
            if status not in (0, NO_TEST) and not (marked and status < 0):  # slow tests may take longer than there is
                return Trial(name, shown, "too long" if status < 0 else "killed", last)
    finally:
        path.write_bytes(text)
    return Trial(name, shown, "survived")


def _tests(folder: Path, area: Area, path: Path) -> tuple[list[str], list[str]]:
    """Return the files of tests that import a module or bear its name, and what else belongs to its area."""
    stem = path.stem if path.stem != "__init__" else path.parent.name
    imports = (f"{'.'.join(path.with_suffix('').parts)} import", f"import {stem}\n")
    near = []
    for test in sorted((folder / "tests").rglob("test_*.py")):
        name, text = str(test.relative_to(folder)), test.read_text(encoding="utf-8")
        if test.stem == f"test_{stem}" or any(one in text for one in imports):
            near += [] if name.startswith(area.without or "\0") else [name]
    beside = folder / "tests" / Path(*(part for part in path.parent.parts if part != "commsim"))
    while not beside.is_dir():
        beside = beside.parent
    rest = list(area.tests) or [str(beside.relative_to(folder))]
    return near, [*rest, *(f"--ignore={one}" for one in area.without if one.startswith("tests"))]


def _tested(folder: Path, tests: Sequence[str], seconds: float, marked: str = "") -> tuple[int, str]:
    """Run tests until the first failure; the exit status, and the line that says which failed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", "--no-header",
               "-p", "benchmarks.mutants.time_limit", *(["-m", marked] if marked else []), *tests]  # fmt: skip
    env = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "kernels"),
                        "PYTHONHASHSEED": "0",
                        "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(folder)}  # fmt: skip
    done = subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        text=True, errors="replace",
    )  # fmt: skip
    limit = max(1, round(seconds))
    resource.prlimit(done.pid, resource.RLIMIT_CPU, (limit, limit + 1))
    try:
        said = done.communicate(timeout=WAITING * seconds)[0]
    except subprocess.TimeoutExpired:
        done.kill()
        said = done.communicate()[0]
    if done.returncode < 0:
        return done.returncode, f"ended by {signal.Signals(-done.returncode).name}, with at most {seconds:g} s"
    lines = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))] or said.splitlines()[-1:]
    return done.returncode, (lines or [""])[0][:200]
