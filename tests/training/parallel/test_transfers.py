"""KV caches and weight pushes: every receiver gets its part, once, in the time of the busiest port."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.training.parallel.transfer_times import transfer_rows
from commsim.training.parallel.transfers import WAYS, Side, kv_side, port_bound, transfer_schedule

STAR = "star:n_hosts=16,bandwidth=100Gbps,latency=0s"


@given(st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from([0, 1, 2, 4, 8]))
def test_every_receiver_gets_its_heads_from_one_that_has_them(n_from, n_to, heads):
    senders, receivers = kv_side(n_from, heads, "--from"), kv_side(n_to, heads, "--to")
    moved = transfer_schedule(senders, receivers).expand()
    pieces = np.lcm(senders.parts, receivers.parts)
    for rank in range(n_to):
        got = np.sort(moved["dst_chunk"][moved["dst"] == n_from + rank])
        part = next(p for p in range(receivers.parts) if rank in receivers.holders(p))
        each = pieces // receivers.parts
        assert got.tolist() == list(range(part * each, (part + 1) * each))
    for source, piece in zip(moved["src"], moved["dst_chunk"], strict=True):
        assert source in senders.holders(int(piece) * senders.parts // int(pieces))


def test_the_bound_counts_all_ports_of_a_rank():
    """Beside one port's rate a mesh was faster than its bound."""
    senders, receivers = Side(1, 1, False, "--from"), Side(2, 2, True, "--to")
    (row,), _ = transfer_rows("fully_connected:n_hosts=3", senders, receivers, 1e9, overhead="0us")
    assert row["bound_s"] <= row["time_s"] == pytest.approx(row["bound_s"], rel=1e-3)


def test_the_bound_counts_the_nics_between_machines():
    """The ports of a GPU are its NVLinks too: of 7 ms between two machines the bound was 0.8 ms."""
    senders, receivers = kv_side(8, 8, "--from"), kv_side(8, 8, "--to")
    (row,), _ = transfer_rows("dgx-h100@star:machines=2", senders, receivers, 2.5 * 2**30)
    assert row["bound_s"] == pytest.approx(2.5 * 2**30 / (8 * 48.5e9))
    assert row["bound_s"] < row["time_s"] < 1.02 * row["bound_s"]


@pytest.mark.parametrize(("n_from", "n_to", "parts"), [(4, 4, 4), (2, 8, 8), (8, 4, 4), (4, 8, 4)])
def test_a_direct_transfer_takes_the_time_of_the_busiest_port(n_from, n_to, parts):
    senders, receivers = Side(n_from, n_from, False, "--from"), Side(n_to, parts, True, "--to")
    time = transfer_rows(STAR, senders, receivers, 1e9, overhead="0us")[0][0]["time_s"]
    assert time == pytest.approx(max(n_to / parts / n_from, 1 / parts) * 1e9 / 12.5e9, rel=1e-6)


def test_a_chain_is_near_the_bound_where_direct_copies_share_a_port():
    senders, receivers = Side(1, 1, False, "--from"), Side(8, 1, True, "--to")
    rows, _ = transfer_rows(STAR, senders, receivers, 1e9, WAYS)
    assert [row["way"] for row in rows] == ["chain", "direct"]
    assert (
        port_bound(senders, receivers, 1e9, 12.5e9) == rows[0]["bound_s"] < rows[0]["time_s"] < 2 * rows[0]["bound_s"]
    )


def test_ranks_that_do_not_divide_heads_are_refused():
    with pytest.raises(InputError, match="--to must divide the 8 heads of keys and values, or be a multiple, got 3"):
        kv_side(3, 8, "--to")
    with pytest.raises(InputError, match="senders and receivers are 32 ranks, the network has 16"):
        transfer_rows(STAR, kv_side(16, 0, "a"), kv_side(16, 0, "b"), 1.0)
