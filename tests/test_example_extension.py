"""The example of a package outside of the tree: installed into a folder, its work, its way and its verb are used."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "extension"
sys.path.append(str(ROOT / "docs" / "_site"))
from examples import matches, sessions  # noqa: E402

PAGE = (ROOT / "docs" / "howto_extend.md").read_text(encoding="utf-8")
ASKED = """
import json
import commsim as cs
ask = lambda **more: cs.predict(None, "star:n_hosts=8", "1MiB", work="relay:4", **more)
refused = []
for more in ({"method": "in_turn", "work": "relay:1"}, {"method": "in_turn", "collective": "ring_all_reduce"}):
    try:
        cs.predict(more.pop("collective", None), "star:n_hosts=8", "1MiB", **more)
    except cs.InputError as error:
        refused.append(str(error))
times = {way: [ask(method=way).time, ask(method=way).method] for way in ("events", "in_turn")}
print(json.dumps([times, refused]))
"""


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """Install the package into a folder; return the environment of a process that has it."""
    source, target = (tmp_path_factory.mktemp(name) for name in ("source", "target"))
    shutil.copytree(EXAMPLE, source, dirs_exist_ok=True)
    if all(importlib.util.find_spec(name) for name in ("pip", "setuptools")):
        words = ["install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", target, source]
        subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    else:  # what pip would write
        shutil.copy(EXAMPLE / "commsim_relay.py", target)
        project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
        entries = project["entry-points"]["commsim.extensions"].items()
        info = target / "commsim_relay-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: commsim-relay\nVersion: 1.0\n")
        lines = [f"{name} = {place}\n" for name, place in entries]
        (info / "entry_points.txt").write_text(f"[commsim.extensions]\n{''.join(lines)}")
    return os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{target}", "COLUMNS": "300"}


def answer(words, env):
    done = subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_its_work_its_way_and_its_verb_are_used(beside):
    found, refused = json.loads(answer(["-c", ASKED], beside))
    assert {name: method for name, (_, method) in found.items()} == {"events": "events", "in_turn": "in_turn"}
    assert found["events"][0] == pytest.approx(found["in_turn"][0], rel=1e-12)
    assert refused[0] == "relay:RANKS needs a number of at least 2, got '1'"
    assert "it needs messages that are sent one after the other" in refused[1]
    assert "  relay " in answer(["-m", "commsim", "help", "all"], beside)


@pytest.mark.slow
def test_what_the_page_shows_is_printed(beside):
    (block,) = re.findall(r"^```shell-session\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    shown = {command: text for command, text in sessions(block) if command.startswith("commsim ")}
    assert len(shown) == 2
    for command, text in shown.items():
        assert matches(text, answer(["-m", *command.split()], beside)), command


def test_the_page_shows_the_example_which_is_short():
    parts = re.findall(r"^<!-- of: (\S+) -->\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(parts) == 3
    for path, text in parts:
        assert text in (ROOT / path).read_text(encoding="utf-8")
    assert sum(len(path.read_text().splitlines()) for path in EXAMPLE.iterdir() if path.is_file()) < 150
