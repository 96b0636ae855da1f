import os
import shutil
import subprocess
import sys
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
        ("commsim nc", {"nccl"}),
        ("commsim topo pre", {"presets"}),
        ("commsim workload c", {"calls"}),
        ("commsim help sw", {"switch", "sweep"}),
    ],
)
def test_verbs_flags_and_names_are_completed(line, among, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_COMPLETED", str(tmp_path / "answer"))
    assert among <= offered(line)


def test_old_names_are_not_offered(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_COMPLETED", str(tmp_path / "answer"))
    assert not {"explain", "calls", "convert", "presets"} & offered("commsim ")


# What each shell does at the tabulator key, by its own means; the answers are printed one to a line.
SHELLS = {
    "bash": """
eval "$(register-python-argcomplete commsim)"
COMP_LINE='@LINE@' COMP_POINT=${#COMP_LINE} COMP_TYPE=9; COMP_WORDS=(@LINE@); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_python_argcomplete commsim "${COMP_WORDS[COMP_CWORD]}"
printf '%s\\n' "${COMPREPLY[@]}"
""",
    "fish": "register-python-argcomplete --shell fish commsim | source\ncomplete -C '@LINE@'\n",
    "zsh": """
zmodload zsh/zpty
zpty asked zsh -f -i
zpty -w asked "PS1=; autoload -U compinit; compinit -u -D; eval \\"\\$(register-python-argcomplete commsim)\\""
zpty -w asked "zstyle ':completion:*' list-prompt ''; LISTMAX=9999; setopt no_beep; echo re''ady"
while zpty -r asked line && [[ $line != *ready* ]]; do :; done
zpty -n -w asked $'@LINE@\\t'
for i in {1..60}; do
    sleep 0.5
    zpty -rt asked line && print -r -- $line && [[ $line == *@REST@* ]] && break
done
zpty -d asked
""",
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "wanted"), [("commsim nc", "nccl"), ("commsim topo pre", "presets"), ("commsim workload ca", "calls")]
)
def test_a_shell_completes(shell, line, wanted, tmp_path):
    """Started for real, with what the documentation tells to put into its start file."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    script = tmp_path / "script"
    rest = wanted.removeprefix(line.split()[-1])  # of which zsh prints no more
    script.write_text(SHELLS[shell].replace("@LINE@", line).replace("@REST@", rest))
    environ = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    options = {"env": environ, "capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run([shell, str(script)], **options, check=False)
    assert (rest if shell == "zsh" else wanted) in done.stdout, done
