import io
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from commsim.cli.completion import ASKED, complete

argcomplete = pytest.importorskip("argcomplete")


class Finder(argcomplete.CompletionFinder):
    """Answers in this process: the real one takes its file 9 for a stream of its own, and ends it."""

    def _init_debug_stream(self):
        pass


@pytest.fixture
def offered(monkeypatch):
    """Return a function that asks as the shell's function does, with the line in variables."""

    def offered(line):
        asked = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9", "_ARGCOMPLETE_IFS": "\n"}
        for name, value in (asked | {ASKED: "1"}).items():
            monkeypatch.setenv(name, value)
        said = io.StringIO()
        monkeypatch.setattr(argcomplete, "autocomplete", partial(Finder(), exit_method=sys.exit, output_stream=said))
        with pytest.raises(SystemExit):
            complete()
        return {word.strip() for word in said.getvalue().split("\n") if word.strip()}

    return offered


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
def test_verbs_flags_and_names_are_completed(line, among, offered):
    assert among <= offered(line)


def test_old_names_are_not_offered(offered):
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


@pytest.mark.sample(1, each="shell")
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
