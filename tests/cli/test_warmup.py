"""Parts of a warm-up; all of it compiles for minutes where nothing is cached, so it is not run here."""

from commsim.cli import warmup
from commsim.cli.warmup import compile_part


def test_a_part_compiles_what_its_commands_need_and_says_what_failed():
    found = compile_part(("topo list", "run --topology no_such_network"))
    assert found["time_s"] > 0
    assert "unknown topology" in found["failed"]


def test_the_number_of_processes_is_checked(commsim):
    assert "--jobs must be at least 1, got 0" in commsim.refuses("warmup", "--jobs", "0")


def test_parts_are_printed_with_their_times(commsim, monkeypatch):
    monkeypatch.setattr(warmup, "PARTS", {"lists": ("topo list", "schedule list")})
    (lists, live) = commsim.results("warmup", "--jobs", "1")["results"]
    assert (lists["part"], lists["failed"], live["part"]) == ("lists", None, "a real switch")
