import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("argcomplete")


def offered(line):
    """Ask as the shell's function does: the line in variables, the answer in a file."""
    environ = os.environ | {
        "_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9",
        "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": os.environ["PYTEST_COMPLETED"],
    }  # fmt: skip
    subprocess.run([sys.executable, "-m", "commsim"], env=environ, capture_output=True, check=False)
    with open(os.environ["PYTEST_COMPLETED"]) as file:  # noqa: PTH123
        return {word.strip() for word in file.read().split("\n") if word.strip()}


@pytest.mark.parametrize(
    ("line", "among"),
    [
        ("commsim sy", {"synthesize"}),
        ("commsim run --topo", {"--topology"}),
        ("commsim run --topology leaf_sp", {"leaf_spine"}),
        ("commsim run ring_all_r", {"ring_all_reduce"}),
        ("commsim place o", {"order"}),
    ],
)
def test_verbs_flags_and_names_are_completed(line, among, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_COMPLETED", str(tmp_path / "answer"))
    assert among <= offered(line)


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_fish_completes():
    script = "register-python-argcomplete --shell fish commsim | source; complete -C 'commsim sy'"
    done = subprocess.run(["fish", "-c", script], env=with_program(), capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "synthesize"


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_zsh_completes():
    """What zsh writes to its terminal after a tab."""
    master, slave = os.openpty()
    command = subprocess.Popen(["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, env=with_program())
    try:
        set_up = 'autoload -Uz compinit; compinit -u -D; eval "$(register-python-argcomplete commsim)"; echo re""ady\n'
        os.write(master, set_up.encode())
        read_until(master, "ready")
        os.write(master, b"commsim syn\t")
        read_until(master, "synthesize")
    finally:
        command.kill()
        command.wait()
        os.close(master)
        os.close(slave)


def with_program():
    """Return the environment of a shell in which this Python's programs are found."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TERM": "dumb"}


def read_until(master, text, seconds=30):
    """Read a terminal up to a text; the test fails without it."""
    seen, end = "", time.monotonic() + seconds
    while text not in seen:
        ready, _, _ = select.select([master], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"no {text!r} in {seen!r}"
        seen += os.read(master, 4096).decode(errors="replace")
