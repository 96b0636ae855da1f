"""What is put to peers is what commsim plays; and where a peer is installed, it predicts the same time."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import benchmarks.peers.__main__ as program
from benchmarks.peers.installed import PEERS, NotInstalledError, Peer, simgrid
from benchmarks.peers.ours import predict
from benchmarks.peers.page import COLUMNS, cells, write_page
from benchmarks.peers.work_file import require_same, write_work
from benchmarks.peers.works import WORKS, Work, all_to_all, random_fetches, ring
from benchmarks.processes import Run, run
from commsim.core.errors import CommsimError, InputError

FAT_TREE = "fat_tree:k=4,bandwidth=100Gbps,latency=0s"
SMALL = {
    "ring": ring(5, 5e6),
    "all-to-all": all_to_all(16, 16e6, FAT_TREE),
    "random": random_fetches(4, 5),
    "packets": ring(4, 4e5, "packet"),
}


@pytest.mark.parametrize("name", SMALL)
def test_peers_get_the_messages_of_the_schedule(name: str) -> None:
    require_same(SMALL[name], SMALL[name].messages())


def test_messages_that_differ_from_the_schedules_are_refused() -> None:
    work = SMALL["ring"]
    messages = work.messages()
    for wrong in (
        dataclasses.replace(messages, n_bytes=messages.n_bytes * 2),
        dataclasses.replace(messages, dst=messages.dst[::-1]),
    ):
        with pytest.raises(InputError, match="not the same"):
            require_same(work, wrong)


@pytest.mark.parametrize("name", SMALL)
def test_the_file_holds_what_its_lengths_say(name: str, tmp_path: Path) -> None:
    write_work(SMALL[name], tmp_path / "work")
    numbers = np.fromfile(tmp_path / "work", np.int32)
    hosts, nodes, rounds, fetched, links, routes, entries, messages = numbers[:8]
    assert (hosts, fetched) == (len(set(SMALL[name].messages().dst)), SMALL[name].messages().fetched)
    assert nodes > hosts
    assert rounds == SMALL[name].messages().round.max() + 1
    doubles, integers = 2 * links + messages, 2 * links + 3 * routes + 1 + entries + 2 * messages
    assert len(numbers) == 8 + 2 * doubles + integers
    assert messages == len(SMALL[name].messages().src)


def test_sprayed_routes_and_networks_whose_hosts_come_later_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one path for a message"):
        write_work(dataclasses.replace(SMALL["all-to-all"], routing="spray"), tmp_path / "work")


if shutil.which("g++") and Path("/usr/include/simgrid/s4u.hpp").exists():

    @pytest.fixture(scope="module")
    def replay(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
        return simgrid(tmp_path_factory.mktemp("simgrid"), "")

    WAYS = [("ring", "mailboxes"), ("all-to-all", "mailboxes"), ("random", "mailboxes"), ("random", "direct")]

    @pytest.mark.parametrize(("name", "way"), WAYS)
    def test_simgrid_predicts_the_same_time(name: str, way: str, replay: list[str], tmp_path: Path) -> None:
        write_work(SMALL[name], tmp_path / "work")
        theirs = run([*replay, str(tmp_path / "work"), way]).number("time_s")
        assert theirs == pytest.approx(predict(SMALL[name]), rel=1e-9)

    def test_simgrid_refuses_a_file_that_is_cut_short_or_too_long(replay: list[str], tmp_path: Path) -> None:
        write_work(SMALL["ring"], tmp_path / "work")
        whole = (tmp_path / "work").read_bytes()
        for content, why in ((whole[:-8], "cut short"), (whole + b"\0", "too long")):
            (tmp_path / "work").write_bytes(content)
            with pytest.raises(CommsimError, match=why):
                run([*replay, str(tmp_path / "work"), "mailboxes"])


def runs(ours: float = 2.0) -> list[tuple[Run, ...]]:
    """Three turns of made-up runs: a fresh process, the peer, a warm process."""

    def said(cpu: float, run_cpu: float, time: float) -> Run:
        return Run(cpu, {"version": "1", "time_s": time, "run_cpu_s": run_cpu, "peak_MB": 10 * cpu})

    return [
        (said(1.0 + i, 0.5, 2.0), said(8.0 * (i + 1), 7.0, 2.5), said(1.5, 0.1 * (i + 1), ours if i == 2 else 2.0))
        for i in range(3)
    ]


def test_a_row_has_medians_and_their_ratios() -> None:
    row = program.row("ring_256", PEERS[0], runs())
    assert (row["cpu_s"], row["process_cpu_s"], row["peer_cpu_s"]) == pytest.approx((0.2, 2.0, 16.0))
    assert (row["ratio"], row["process_ratio"]) == pytest.approx((80.0, 8.0))
    assert row["difference"] == pytest.approx(0.25)
    assert (row["rss_MB"], row["peer_rss_MB"]) == (30.0, 240.0)
    assert len(cells(row)) == len(COLUMNS)


def test_a_program_that_changes_its_mind_is_an_error() -> None:
    with pytest.raises(CommsimError, match="2 different times"):
        program.row("ring_256", PEERS[0], runs(ours=2.1))


def test_a_peer_that_is_not_installed_is_left_out_with_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def missing(folder: Path, python: str) -> list[str]:
        raise NotInstalledError("not installed; on Debian: apt-get install g++ something")

    def always(work: Work, messages: Any) -> bool:
        return True

    monkeypatch.setattr(program, "PEERS", (Peer("Other", always, missing),))
    assert program.main(["--only", "packets_ring_8", "--json", str(tmp_path / "out.json")]) == 0
    assert "# Other is left out: not installed; on Debian: apt-get install g++ something" in capsys.readouterr().out
    assert json.loads((tmp_path / "out.json").read_text())["rows"] == []


@pytest.mark.parametrize(("flags", "why"), [(["--only", "nothing"], "unknown work"), (["--times", "0"], "at least 1")])
def test_flags_that_make_no_sense_are_refused(flags: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(flags) == 2
    assert why in capsys.readouterr().err


def test_every_work_has_a_peer_and_the_page_names_it(tmp_path: Path) -> None:
    for name, work in WORKS.items():
        if name != "ring_1024":
            assert any(peer.plays(work, work.messages()) for peer in PEERS)
    row = program.row("ring_256", PEERS[0], runs())
    write_page(str(tmp_path / "page.md"), [row], 3)
    assert "`ring_256`: ring all-reduce, 256 ranks" in (tmp_path / "page.md").read_text()
