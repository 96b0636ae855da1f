"""Less hardware is never faster, more never slower: NICs, their rate, and the way to them."""

import itertools

import numpy as np
import pytest

import commsim as cs

# Of a time: what the loops that are simulated of all leave open.
OPEN = 0.01


def times(options, size="1GiB"):
    """Times of an all-reduce on four machines with each of some options, s."""
    return [cs.predict("nccl_all_reduce", f"dgx-h100:{one}@star:machines=4", size, hashes=1).time for one in options]


@pytest.mark.parametrize(
    "options",
    [
        [f"nic={rate}Gbps" for rate in (100, 200, 380, 400, 420, 500, 600, 800)],
        [f"pcie={rate}GB/s" for rate in (12, 24, 40, 48, 55, 63, 126)],
        [f"n_nics={n}" for n in range(1, 9)],
    ],
    ids=("nic", "pcie", "n_nics"),
)
def test_more_is_never_slower(options):
    """A NIC of 800 Gb/s was 12 % slower than one of 400, three NICs slower than two, and five than four."""
    found = times(options)
    assert all(after <= before * (1 + OPEN) for before, after in itertools.pairwise(found)), np.round(found, 5)
    assert found[-1] < 0.7 * found[0]
