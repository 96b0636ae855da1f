"""The core without an extension: each is hidden in turn, then all; `make test-core` runs the core's tests so."""

import subprocess
import sys
from pathlib import Path

import pytest
from hidden_extensions import environment

from commsim.extensions import EXTENSIONS

ALONE = Path(__file__).parent / "without" / "core_alone.py"


def check_alone(names):
    done = subprocess.run(
        [sys.executable, ALONE, *names], env=environment(names), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_core_works_without_all_extensions():
    check_alone(EXTENSIONS)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXTENSIONS)
def test_the_core_works_without_an_extension(name):
    check_alone([name])


def test_what_is_hidden_is_not_there():
    code = "import commsim.extensions as e; e.house().works['jobs']"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(["jobs"]), capture_output=True, text=True, check=False
    )
    assert "no extension that is installed brings the work 'jobs' (not there: jobs)" in done.stderr
