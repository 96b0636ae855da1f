import os
import re
import tomllib
from pathlib import Path

import pytest

import commsim as package
from commsim.cli.doctor import PACKAGES
from commsim.cli.parsing.aliases import HIDDEN, RENAMED
from commsim.prediction import self_check


def test_doctor_says_what_is_there_and_what_for(commsim):
    found = {r["what"]: r["found"] for r in commsim.results("doctor")["results"]}
    assert int(found["cores"]) >= 1
    assert found["numba"][0].isdigit()
    assert found["root"] in ("yes", "no")
    assert found["tc netem"].split()[0] in ("yes", "no", "unknown")


def test_doctor_says_what_the_switch_in_the_kernel_needs(commsim):
    found = {r["what"]: r["found"] for r in commsim.results("doctor")["results"]}
    for what in ("namespaces", "tc clsact", "bpf"):
        assert found[what] == "yes" or (found[what].startswith("no: ") and len(found[what]) > 10)
    if found["bpf"] == "yes":
        assert found["clang"].startswith("/")
        assert found["bpftool"].startswith("/")


def test_doctor_finds_that_there_is_no_compiler(commsim, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {r["what"]: r["found"] for r in commsim.results("doctor")["results"]}
    assert found["clang"].startswith("no")
    assert found["bpf"].startswith("no: ")
    for what, lacking in (("tc clsact", "iproute2"), ("tc tbf", "iproute2"), ("nft egress", "nftables")):
        assert found[what].startswith("no")
        assert lacking in found[what]
        assert "kernel" not in found[what]  # which was not asked


def test_a_page_of_doctor_is_read_in_a_pipe(commsim, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", os.devnull)
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, commsim("doctor").out.splitlines())) <= 80


def test_doctor_says_what_a_testbed_needs(commsim):
    found = {r["what"]: r["found"] for r in commsim.results("doctor")["results"]}
    for what in ("veth", "tc tbf", "tc netem", "nft egress"):
        assert found[what].split()[0] in ("yes", "no", "unknown")
    assert found["testbed"] == "yes" or (found["testbed"].startswith("no: ") and len(found["testbed"]) > 10)
    if found["testbed"] == "yes":
        assert found["ethtool"].startswith("/")
        assert found["pyroute2"][0].isdigit()
        assert (found["veth"], found["tc tbf"]) == ("yes", "yes")


def test_doctor_finds_that_nobody_may_make_testbeds_without_root(commsim, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    found = {r["what"]: r["found"] for r in commsim.results("doctor")["results"]}
    assert found["testbed"] == "no: a testbed needs Linux and root: it makes network namespaces"
    assert found["veth"].startswith("unknown")


def test_every_package_of_an_extra_is_looked_for_and_said_what_for():
    """So that a message `pip install commsim[x]` can be checked, and `commsim[all]` has all that doctor names."""
    project = tomllib.loads((Path(package.__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    every = set(re.findall(r"[a-z]+", extras["all"][0].partition("[")[2]))
    large = {"torch", "ray"}
    assert every == extras.keys() - large - {"all", "mpi"}  # mpich has an MPI of its own
    for extra, needs in extras.items():
        for need in needs if extra != "all" else ():
            name = re.match(r"[\w.-]+", need)[0]
            assert re.search(rf"\(extra .*\b{extra}\b.*\)", PACKAGES[name]), (extra, name)


def test_what_a_package_is_for_is_said_in_words_that_help_lists():
    old = HIDDEN.keys() | {words[0] for words in RENAMED if len(words) == 1}
    for package_name, what_for in PACKAGES.items():
        said = {part.split()[0].rstrip(":") for part in what_for.split(", ")}
        assert not said & old, (package_name, what_for)


def test_the_deep_look_names_what_differs_and_fails(commsim, monkeypatch):
    forms, byte = self_check.CLOSED_FORMS, self_check.BYTE
    right = {f"{name}, {p} ranks, {size} B": float(forms[name](p, self_check.LATENCY, size * byte))
             for name, p, size in self_check._cases()}  # fmt: skip
    wrong = {**right, "ring_all_gather, 4 ranks, 65536 B": 1.0}
    monkeypatch.setattr(self_check, "interpreted", lambda: right)
    for times, verdict in ((right, "20 "), (wrong, "no: 1 differ, ring_all_gather, 4 ranks, 65536 B")):
        monkeypatch.setattr(self_check, "predicted", lambda times=times: times)
        found = {what: said for what, said, _ in self_check.rows()}
        assert found["predictions"].startswith(verdict)
        assert found["interpreted"].startswith(verdict)
    monkeypatch.setattr(self_check, "rows", lambda: [("predictions", "no: 1 differ", "x")])
    assert commsim("doctor", "--deep").code == 1


@pytest.mark.slow
def test_this_machine_passes_the_deep_look(commsim):
    found = {r["what"]: r["found"] for r in commsim.results("doctor", "--deep")["results"]}
    assert found["predictions"] == "20 equal their closed forms"
    assert found["interpreted"] == "24 answers equal, bit by bit"


def test_messages_about_extras_have_the_command_that_installs_them():
    root = Path(package.__file__).parent
    told = [path.name for path in root.rglob("*.py") if re.search(r"install commsim\[", path.read_text("utf-8"))]
    assert told == []


def test_doctor_has_the_line_for_completion(commsim):
    why = {r["what"]: r["for"] for r in commsim.results("doctor")["results"]}
    assert 'eval "$(register-python-argcomplete commsim)"' in why["argcomplete"]
