"""The examples that help prints, as tests run them: in a shell, or as words of commands."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from ports import free_ports

import commsim
from commsim.cli import listed_verbs
from commsim.cli.parsing.examples import examples_of

ROOT = Path(commsim.__file__).parent.parent
# Examples that compile all kernels, measure for a minute, or make namespaces as root.
LONG = ("warmup", "calibrate", "validate", "testbed")
# What a shell does more than to split a line into words.
OF_A_SHELL = re.compile(r"[;&|<>$`*?(){}\n]")


def in_shell(line, folder, **more):
    """Run a line in a folder; return what it printed on standard error."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **more}
    line = _on_a_free_port(line) if " serve " in line else line
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert "Traceback" not in done.stderr, f"{line}\n{done.stderr}"
    return done.stderr


def in_process(line, folder):
    """Run a line that needs no shell in this process, whose kernels are loaded; return what it printed in the end."""
    from commsim.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(shlex.split(line)[1:])
        except SystemExit as stop:
            code = stop.code or 0
    assert code == 0, f"{line}\n{err.getvalue()}"
    return err.getvalue()


def _on_a_free_port(line):
    """Give a server a port that no other test has, and have those who ask it wait until it listens, not for a time."""
    (port,) = free_ports(1)
    line = re.sub(r"\b8080\b", f"{port}", line)
    line = re.sub(r"(switch (serve|all-reduce|status))", rf"\1 --port {port}", line)
    listens = f"until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null || ! kill -0 $! 2>/dev/null; do sleep 0.1; done"
    return re.sub(r"sleep 2\b", listens, line)


def verbs():
    """Verbs whose examples can be run anywhere."""
    return [verb for verb in listed_verbs() if verb not in LONG]


def commands():
    """Examples that one process can run one after the other, without a shell; sweeps start processes of their own."""
    lines = [
        line for verb in verbs() if verb not in ("emulate", "sweep") for line in examples_of(f"commsim {verb}".strip())
    ]
    alone = [
        one.strip() for line in lines if not re.search(r"[;]|& |=kernels|mpirun", line) for one in line.split("&&")
    ]
    return [line.removeprefix("commsim ") for line in alone]
