"""The core without an extension: each is hidden in turn, then all; `make test-core` runs the core's tests so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hidden_extensions import environment

from commsim.extensions import EXTENSIONS

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Return what the core printed with each extension hidden: one process starts all, for importing takes longest."""
    folder = tmp_path_factory.mktemp("alone")
    env = environment(EXTENSIONS)
    env["PYTHONPATH"] += os.pathsep + str(HERE / "oracles")
    words = [sys.executable, HERE / "without" / "core_alone.py", folder]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_the_core_works_without_all_extensions(printed):
    assert printed["all"] == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", EXTENSIONS)
def test_the_core_works_without_an_extension(printed, name):
    assert printed[name] == ""


def test_what_is_hidden_is_not_there():
    code = "import commsim.extensions as e; e.house().works['jobs']"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(["jobs"]), capture_output=True, text=True, check=False
    )
    assert "no extension that is installed brings the work 'jobs' (not there: jobs)" in done.stderr
