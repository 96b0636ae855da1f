"""Benchmarks in the manner of OSU's with up to 256 ranks: times of each collective as predicted."""

import json
from pathlib import Path

import pytest

import commsim as cs
from commsim.cli import main

PROGRAM = str(Path(__file__).parent / "osu_of_collectives.py")
SIZES = {"Allgather": (16, 1024, 65536), "Bcast": (8, 1 << 20), "Alltoall": (64, 1024, 65536)}
OPERATIONS = {"Allgather": "all_gather", "Bcast": "broadcast", "Alltoall": "all_to_all"}


@pytest.mark.parametrize(
    ("n_ranks", "network", "name", "library"),
    [
        (2, "star:n_hosts=2", "Allgather", "mpich"),
        (16, "star:n_hosts=16,latency=1us", "Alltoall", "mpich"),
        (16, "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4", "Bcast", "open-mpi"),
        pytest.param(256, "fat_tree:k=12", "Allgather", "mpich", marks=pytest.mark.deep),
        pytest.param(256, "fat_tree:k=12", "Bcast", "mpich", marks=pytest.mark.deep),
        pytest.param(256, "fat_tree:k=12", "Allgather", "open-mpi", marks=pytest.mark.deep),
        pytest.param(256, "fat_tree:k=12", "Alltoall", "mpich", marks=pytest.mark.deep),
    ],
)
def test_what_is_printed_is_what_run_predicts(tmp_path, capfd, n_ranks, network, name, library):
    out, sizes = tmp_path / "out.json", SIZES[name]
    given = ["-n", str(n_ranks), "--topology", network, "--ranks-as", "threads", "--data", "none", "--library", library]
    argv = ["emulate", *given, "--json", str(out), "--", "python", PROGRAM, name, *map(str, sizes)]
    assert main(argv) == 0
    printed = [line.split() for line in capfd.readouterr().out.splitlines() if line.count(" ") == 1][: len(sizes)]
    assert [int(size) for size, _ in printed] == list(sizes)
    found = json.loads(out.read_text())["results"]
    rows = {row["size_B"]: row for row in found if row["operation"] == OPERATIONS[name]}
    for size, time in printed:
        whole = float(size) * (1 if name == "Bcast" else n_ranks)
        predicted = cs.predict(rows[whole]["algorithm"], network, whole, n_ranks=n_ranks).time
        assert float(time) == pytest.approx(predicted, rel=1e-9)
        assert rows[whole]["time_s"] == pytest.approx(predicted, rel=1e-9)
