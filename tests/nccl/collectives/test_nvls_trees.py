"""NVLS trees between machines: both trees are in use, so that each NIC sends and receives 2 S / heads at most."""

import itertools

import numpy as np
import pytest

from collectives import COLLECTIVES
from collectives.nccl.trees import busiest_share, node_trees
from commsim.core.checking.check import check


def sent_between(n_machines, per_machine, n_channels=16, algorithm="nvls_tree"):
    """Parts of the array that each GPU sends to GPUs of other machines, and receives from them."""
    n = n_machines * per_machine
    machines = tuple(tuple(range(m * per_machine, (m + 1) * per_machine)) for m in range(n_machines))
    schedule = COLLECTIVES["nccl_all_reduce"].build(
        n, algorithm=algorithm, protocol="simple", channels=n_channels, n_bytes=n_channels * 2**21, machines=machines
    )
    check(schedule)
    sent, received = np.zeros(n), np.zeros(n)
    for row in itertools.chain(*schedule.rounds()):
        if max(row["src"], row["dst"]) < n and row["src"] // per_machine != row["dst"] // per_machine:
            sent[row["src"]] += row["count"] / schedule.n_chunks
            received[row["dst"]] += row["count"] / schedule.n_chunks
    return sent, received


@pytest.mark.parametrize("n_machines", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("n_channels", [8, 16, 24])
def test_each_head_is_inner_in_one_tree_and_leaf_in_the_other(n_machines, n_channels):
    """Of heads H a NIC sends S/H on two machines, 3/2 S/H on three, 2 S/H on more; no NIC sends more."""
    per_machine = 4
    sent, received = sent_between(n_machines, per_machine, n_channels)
    most = {2: 1.0, 3: 1.5}.get(n_machines, 2.0) / per_machine
    assert sent.max() == pytest.approx(most)
    assert received.max() == pytest.approx(most)
    assert sent.sum() == pytest.approx(2 * (n_machines - 1))


@pytest.mark.parametrize(("n_machines", "share"), [(2, 1.0), (3, 1.5), (4, 2.0), (5, 2.0), (17, 2.0), (64, 2.0)])
def test_the_busiest_machine_has_the_neighbours_of_both_trees(n_machines, share):
    assert busiest_share(n_machines) == share
    degrees = np.zeros(n_machines)
    for parent in node_trees(n_machines):
        for child, above in enumerate(parent.tolist()):
            degrees[[child, above]] += above >= 0
    assert degrees.max() / 2 == share
    assert degrees.sum() == 4 * (n_machines - 1)


@pytest.mark.parametrize("n_machines", [2, 3, 4, 6])
def test_a_tree_s_busiest_machine_sends_what_the_time_counts(n_machines):
    sent, _ = sent_between(n_machines, 2, 4, "tree")
    assert sent.reshape(n_machines, 2).sum(axis=1).max() == pytest.approx(busiest_share(n_machines))
