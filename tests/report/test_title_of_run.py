"""Titles on a terminal of 80 columns: two lines, which have what changes the answer."""

import contextlib
import io

import pytest

import commsim as cs
from commsim.cli import main
from commsim.report import titles

FABRIC = "dgx-h100@leaf_spine:machines=16,n_leaves=2,n_spines=8,oversubscription=4"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def title_of(words, monkeypatch, out):
    """Return the lines above the table, without what begins them."""
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.redirect_stdout(out):
        assert main(["run", *words, "--topology", FABRIC]) == 0
    lines = out.getvalue().splitlines()
    return lines[: next(i for i, line in enumerate(lines) if "time(us)" in line)]


@pytest.mark.parametrize(
    ("words", "stands"),
    [
        ("nccl --placement spread --size 1G", ["placement spread", "nvls_tree/simple,", "fabric 4:1 oversubscribed"]),
        ("nccl:algorithm=ring --size 1G", ["algorithm=ring", "ring/simple", "fabric 4:1 oversubscribed"]),
        (
            "nccl --placement spread --size 1M,1G --fail link:leaf0:spine0",
            ["without leaf0:spine0", "placement spread", "nvls_tree/simple from 1 GiB", "fabric 4.27:1"],
        ),
    ],
)
def test_two_lines_have_the_ratio_the_fault_the_placement_and_the_choice(words, stands, monkeypatch):
    lines = title_of(words.split(), monkeypatch, Terminal())
    title = " ".join(line.lstrip("# ") for line in lines)
    assert len(lines) <= 2
    assert not title.endswith("...")
    assert [one for one in stands if one not in title] == []


def test_in_a_pipe_nothing_is_left_out(monkeypatch):
    (title,) = title_of(["nccl", "--placement", "spread", "--size", "1G"], monkeypatch, io.StringIO())
    assert FABRIC in title
    assert ", placement spread, nvls_tree/simple, engine flow, the library's own costs" in title
    assert title.endswith("fabric 4:1 oversubscribed, infiniband spreads packets")


@pytest.mark.parametrize(
    ("placement", "n_ranks", "told"),
    [
        ("spread", 8, "placement spread: 4 machines of 2 ranks"),
        ("spread", 32, "placement spread"),  # whole machines
        ("m0,m0", None, "placement m0,m0: 1 machine of 2 ranks"),
        ("m0", None, "placement m0"),
        ("packed", 8, None),
    ],
)
def test_machines_that_are_used_in_part_are_counted(placement, n_ranks, told):
    scenario = cs.scenario_of("nccl_all_reduce", "dgx-h100@star:machines=4", n_ranks=n_ranks, placement=placement)
    phrases = titles.title_of(cs.solve(scenario, ["1MiB"]))
    assert [phrase for phrase in phrases if phrase.startswith("placement")] == ([told] if told else [])
