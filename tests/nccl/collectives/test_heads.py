"""Heads: GPUs of a machine that own a part of what a switch or the network adds."""

import numpy as np
import pytest

from collectives import COLLECTIVES
from collectives.nccl.launch import NcclParameters
from collectives.nccl.nvls import head_places
from commsim.core.checking.check import check
from commsim.core.errors import InputError


def machines_of(n_machines, per_machine):
    return tuple(tuple(range(m * per_machine, (m + 1) * per_machine)) for m in range(n_machines))


def built(asked):
    given = {name: getattr(asked, name) for name in ("algorithm", "channels", "n_bytes", "machines", "heads")}
    return COLLECTIVES["nccl_all_reduce"].build(asked.n_ranks, **given)


def test_heads_are_the_gpus_by_which_channels_leave():
    assert head_places(8, 4) == [0, 2, 4, 6]
    assert head_places(8, 8) == list(range(8))
    assert head_places(8, 6) == list(range(6))  # those without a NIC of their own are last in their machine
    assert len(set(head_places(72, 32))) == 32


@pytest.mark.parametrize("n_machines", [1, 2])
def test_nvlink_sharp_has_32_heads_in_a_rack_of_more_gpus(n_machines):
    """The 33rd GPU of a rack owns nothing: only 32 of them read sums from the switch."""
    algorithm = "nvls" if n_machines == 1 else "nvls_tree"
    asked = NcclParameters("x", "all_reduce", 36 * n_machines, algorithm, channels=2, n_bytes=2**20,
                  machines=machines_of(n_machines, 36))  # fmt: skip
    assert asked.call().n_heads == 32
    schedule = built(asked)
    check(schedule)
    switches = range(36 * n_machines, 37 * n_machines)
    rows = np.concatenate(list(schedule.rounds()))
    up = rows[np.isin(rows["dst"], switches) & ~np.isin(rows["src"], switches)]
    own = rows[np.isin(rows["src"], switches) & ~np.isin(rows["dst"], switches) & (rows["channel"] < 2)]
    assert len(np.unique(up["src"])) == 36 * n_machines  # all give
    assert len(np.unique(own["dst"])) == 32 * n_machines  # sums go to heads only


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_collnet_direct_with_fewer_heads_is_proved(heads):
    asked = NcclParameters(
        "x", "all_reduce", 8, "collnet_direct", channels=2, n_bytes=2**18, machines=machines_of(2, 4), heads=heads
    )
    schedule = built(asked)
    check(schedule)
    outside = np.concatenate([rows[rows["dst"] >= 8] for rows in schedule.rounds()])
    assert len(np.unique(outside["src"])) == 2 * heads


def test_more_heads_than_gpus_are_refused():
    with pytest.raises(InputError, match="heads must be 0 to the 4 GPUs of a machine, got 5"):
        NcclParameters("x", "all_reduce", 8, "collnet_direct", machines=machines_of(2, 4), heads=5).call()
