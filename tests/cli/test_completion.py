import os
import subprocess
import sys

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
