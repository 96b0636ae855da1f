import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectives.servers.closed_forms import byteps_split
from collectives.servers.key_placement import (
    HASHES,
    by_hash,
    by_mixed_mode,
    by_range,
    djb2,
    imbalance,
    naive,
    partition_keys,
    sdbm,
)
from commsim.core.errors import InputError

pytestmark = pytest.mark.nojit
KEYS = partition_keys([4_096_000 * 40] * 50)[0]


def test_partitions_are_numbered_within_their_tensor_and_hold_all_of_its_bytes():
    key, n_bytes = partition_keys([10, 4, 1], 4)
    assert key.tolist() == [0, 1, 2, 1 << 16, 2 << 16]
    assert n_bytes.tolist() == [4, 4, 2, 4, 1]


def test_hashes_are_what_they_are_by_hand():
    # the digits of 65536 are 54 53 53 51 54 in ASCII
    assert djb2(7) == 5381 * 33 + 55
    assert djb2(65536) == ((((5381 * 33 + 54) * 33 + 53) * 33 + 53) * 33 + 51) * 33 + 54
    assert sdbm(7) == 55
    assert sdbm(10) == 49 * 65599 + 48
    assert naive(3 << 16 | 5) == 8 * 9973


@given(key=st.integers(0, 2**48))
def test_hashes_are_those_of_shifts_and_64_bits(key):
    a, b = np.uint64(5381), np.uint64(0)
    with np.errstate(over="ignore"):
        for digit in str(key).encode():
            a = (a << np.uint64(5)) + a + np.uint64(digit)
            b = np.uint64(digit) + (b << np.uint64(6)) + (b << np.uint64(16)) - b
    assert (djb2(key), sdbm(key)) == (int(a), int(b))


@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=200), n_servers=st.integers(1, 9))
def test_ranges_are_runs_and_no_further_from_equal_than_the_largest_partition(sizes, n_servers):
    server = by_range(sizes, n_servers)
    assert (np.diff(server) >= 0).all()
    load = np.bincount(server, sizes, n_servers)
    assert server.min() >= 0
    assert len(load) == n_servers
    assert (abs(load - sum(sizes) / n_servers) <= max(sizes) + 1).all()


@pytest.mark.parametrize("name", HASHES)
def test_every_key_has_a_server_and_many_keys_are_spread_over_all(name):
    server = by_hash(KEYS, 8, name)
    load = np.bincount(server, minlength=8)
    assert len(load) == 8
    assert (load > 0).all()
    assert 1 <= imbalance(server, np.ones(len(KEYS)), [1 / 8] * 8) < 2


@pytest.mark.parametrize(("n", "k"), [(8, 0), (8, 3), (8, 8), (32, 5)])
def test_mixed_mode_gives_cpu_machines_theorem_1s_share_of_the_classes(n, k):
    bound = 1009
    share = float(byteps_split(n, k).to_cpus)
    every_class = {}
    for key in range(30_000):
        every_class.setdefault(djb2(key) % bound, key)
    assert len(every_class) == bound
    server = by_mixed_mode(list(every_class.values()), n, k, bound)
    assert (server < k).sum() == np.ceil(share * bound)
    assert server.max() < n + k


def test_mixed_mode_is_more_uneven_with_few_classes_than_an_exact_split():
    split = byteps_split(8, 4)
    share = [float(split.per_cpu)] * 4 + [float(split.per_gpu)] * 8
    coarse, fine = (imbalance(by_mixed_mode(KEYS, 8, 4, b), np.ones(len(KEYS)), share) for b in (101, 10_007))
    assert coarse > fine > 1


def test_imbalance_is_the_worst_load_over_its_fair_share():
    assert imbalance([0, 0, 1], [1, 1, 2], [0.5, 0.5]) == 1
    assert imbalance([0, 0, 1], [3, 3, 2], [0.5, 0.5]) == 1.5
    assert imbalance([0, 1], [1, 1], [1, 0]) == np.inf
    assert imbalance([0, 0], [1, 1], [1, 0]) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: by_hash([1], 0), "n_servers of at least 1, got n_servers=0"),
        (lambda: by_range([1], 0), "n_servers of at least 1, got n_servers=0"),
        (lambda: by_hash([1], 2, "md5"), "unknown hash 'md5'; known: djb2, naive, sdbm"),
        (lambda: by_mixed_mode([1], 4, 5), r"n_servers of 0\.\.4 fit"),
        (lambda: by_mixed_mode([1], 90, 12), "bound of at least 102, the number of servers, got 101"),
        (lambda: partition_keys([0]), "at least 1 byte, got 0"),
        (lambda: partition_keys([1], 0), "at least 1 byte, got 0"),
        (lambda: partition_keys([2**17], 1), "131072 partitions of 1 bytes; at most 65536 have keys"),
        (lambda: imbalance([0], [1], [0.5]), "shares must add up to 1"),
        (lambda: imbalance([], [], [1.0]), "there must be bytes"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
