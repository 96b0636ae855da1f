"""What NCCL 2.28.9 itself chose and took on a lent GPU, against the model: nothing of it was fitted."""

import json

import pytest

from benchmarks.nccl_ranks.keep import KEPT
from benchmarks.nccl_ranks.own_search import differing_channels
from benchmarks.nccl_ranks.page import VERSION, compared_times, differing_calls, differing_costs
from commsim.nccl.gpu_costs import costs

NCCL = json.loads(KEPT.read_text())


def test_its_table_of_costs_is_ours():
    n, differing = zip(*map(differing_costs, NCCL["choices"]), strict=True)
    assert sum(n) > 600
    assert [name for names in differing for name in names] == []


def test_its_search_finds_the_channels_that_ours_does(tmp_path):
    """Also where bytes go through the host: a switch's link to the CPU carries them twice each way."""
    found = [differing_channels(choice, tmp_path, VERSION) for choice in NCCL["choices"]]
    assert len(found) == 76
    assert [text for texts in found for text in texts] == []


def test_it_takes_the_algorithm_protocol_and_channels_that_we_say():
    n, differing = zip(*map(differing_calls, NCCL["choices"]), strict=True)
    assert sum(n) == 76 * 76
    assert [text for texts in differing for text in texts] == []


@pytest.mark.parametrize(("operation", "how"), [
    ("all_reduce", "ring/simple"), ("all_gather", "ring/simple"), ("reduce_scatter", "ring/simple"),
    ("all_to_all", "p2p"), ("all_reduce", "tree/simple"),
])  # fmt: skip
def test_shaped_links_decide_its_time(operation, how):
    """4 MiB and 16 MiB on four hosts of 1 Gbit/s: NCCL's own costs are a small part; of trees 7 % are not explained."""
    name = "star 4 x 1G"
    kept = [row for row in NCCL["times"] if row[:3] == [name, operation, how] and row[5] >= 2**22]
    rows = list(compared_times({"times": kept}, [name]))
    assert len(rows) == 2
    for *_, measured, ours in rows:
        assert ours == pytest.approx(measured, rel=0.08 if "tree" in how else 0.02)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("operation", ["all_gather", "reduce_scatter"])
def test_on_loopback_a_rank_copies_about_as_fast_as_on_another_machine_over_sockets(ranks, operation):
    """Nothing but copies bounds it there, 2.5 GB/s each way, the receiver's protocol among them."""
    name, size = f"loopback {ranks}", 2**26
    (seconds,) = {row[6] for row in NCCL["times"] if row[:3] == [name, operation, "ring/simple"] and row[5] == size}
    rate = size * (ranks - 1) / ranks / seconds
    assert costs().of_network("ena").copy == pytest.approx(rate, rel=0.25)
    assert rate < costs().of_network("sockets").copy
