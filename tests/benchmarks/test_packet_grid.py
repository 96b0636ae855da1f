"""The grid that auto looks up: what is in it, and why one rate is enough with an ideal window."""

import json
from pathlib import Path

import pytest

from benchmarks.accuracy.packet_grid import (
    BLOCKS,
    COLLECTIVES,
    MIB,
    PRODUCTS,
    Block,
    number_of_cases,
    played,
    write_data,
)
from benchmarks.accuracy.packet_vs_flow import main
from collectives import COLLECTIVES as KNOWN
from commsim.auto.known_error import PACKET, from_tree

SMALL = Block(8, (MIB,), PRODUCTS[1:], ("leaf-spine 2:1",))


def test_every_cell_of_a_block_is_a_case_of_its_own(tmp_path: Path) -> None:
    write_data([SMALL], tmp_path / "data.json")
    found = from_tree(json.loads((tmp_path / "data.json").read_text()))
    assert len(found) == len({one.case for one in found}) == number_of_cases([SMALL]) == 2 * len(COLLECTIVES)
    assert {(one.case.oversubscription, one.case.size, one.case.ranks) for one in found} == {(2, MIB, 8)}
    assert {one.against for one in found} == {PACKET["window"]}


@pytest.mark.sample(1)
@pytest.mark.parametrize("transport", ["window", "dctcp"])
def test_with_an_ideal_window_the_gap_does_not_depend_on_the_rate(transport: str) -> None:
    """Equal sizes and equal products of rate and latency; DCTCP's threshold is a time, so its gap is another one."""
    errors = []
    for rate in (1.25e9, 12.5e9, 50e9):
        block = Block(8, (MIB,), PRODUCTS[1:], ("leaf-spine 2:1",), (transport,), (rate,))
        errors.append([one.error for one in played([block])])
    differs = max(abs(a - b) for some in errors[1:] for a, b in zip(errors[0], some, strict=True))
    assert (differs < 2e-4) == (transport == "window"), differs


def test_the_grid_has_what_people_ask_about() -> None:
    operations = {str(KNOWN[name].metadata["operation"]) for name in COLLECTIVES}
    assert operations == {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all"}
    assert {block.ranks for block in BLOCKS} == {8, 32, 128}
    assert {transport for block in BLOCKS for transport in block.transports} == set(PACKET)


def test_data_are_not_rows_for_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--write-data", "--json", "x.json"])
    assert stop.value.code == 2
    assert "--json goes with the causes, not with --write-data" in capsys.readouterr().err
