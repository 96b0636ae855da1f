"""Sends and receives: parts of a message are between the least and the most that the rules allow."""

import random

import pytest

from collectives.nccl.point_to_point import message, peer_channels

KIB = 1024


@pytest.mark.sample(25)
@pytest.mark.parametrize("seed", range(100))
def test_channels_are_doubled_until_parts_are_small_enough_or_none_are_left(seed):
    draw = random.Random(seed)
    n_bytes, n_ranks, n_channels = int(2 ** draw.uniform(0, 32)), draw.choice([2, 8, 64, 512]), draw.choice([8, 16, 32])
    many = n_ranks > 8
    least, most = peer_channels(n_channels, n_ranks, 50e9 if many else None)
    sent = message(n_bytes, least, most, network=many, many_nodes=many)
    step = (128 if many else 512) * KIB
    low, high = (step // 2, step) if many else (step // 8, 32 * step)
    n = least
    while n > 1 and (n - 1) * low >= n_bytes:
        n -= 1
    while -(-n_bytes // n) > high and 2 * n <= most:
        n *= 2
    assert sent.n_channels == n
    assert sent.protocol == ("ll" if n_bytes <= n * 16 * KIB else "simple")
    assert (sent.n_chunks - 1) * sent.chunk < sent.part <= sent.n_chunks * sent.chunk


def test_a_peer_has_a_channel_for_every_14_gigabytes_per_second_of_a_nic_and_fewer_where_peers_are_many():
    assert peer_channels(32, 2, 50e9) == (4, 4)
    assert peer_channels(32, 2, 25e9) == (2, 2)  # rounded up
    assert [peer_channels(32, n, 50e9) for n in (64, 128, 256)] == [(1, 4), (1, 2), (1, 1)]  # 8 peers for each channel
    assert peer_channels(32, 8) == (4, 32)


def test_up_to_2_28_a_peer_on_another_machine_has_two_channels_or_one():
    assert [peer_channels(32, n, 50e9, (2, 28)) for n in (16, 64, 65)] == [(2, 2), (1, 2), (1, 1)]
    assert peer_channels(32, 8, None, (2, 28)) == peer_channels(32, 8)


@pytest.mark.parametrize(("version", "kib"), [((2, 21), 64), ((2, 22), 512), ((2, 28), 512), ((2, 29), 64)])
def test_messages_take_ll_up_to_16_kib_for_each_channel_by_release(version, kib):
    """Of all channels of a peer (32 of 8 GPUs) from 2.22 to 2.28, else of those that are taken (4)."""
    sent = [
        message(n * KIB, 4, 32, network=False, many_nodes=False, nvlink=True, version=version).protocol
        for n in (kib, kib + 1)
    ]
    assert sent == (["ll", "simple"] if kib == 512 else ["simple", "simple"])
    small = message(16 * KIB, 4, 32, network=False, many_nodes=False, version=version)
    assert (small.protocol, small.n_channels) == ("ll", 2 if kib == 512 else 1)


def test_small_messages_over_a_network_have_smaller_chunks():
    chunks = [message(n, 1, 1, network=True, many_nodes=True).chunk // KIB for n in (17 * KIB, 128 * KIB, 1024 * KIB)]
    assert chunks == [32, 64, 128]
    assert message(0, 1, 4, network=True, many_nodes=True).n_channels == 1


def test_a_signal_has_no_bytes_and_a_chunk_of_ll_is_half_of_a_step():
    assert message(0, 1, 1, network=False, many_nodes=False).n_bytes == 0
    assert message(1000, 1, 1, network=False, many_nodes=False).chunk == 32 * 1024


def test_a_chunk_between_machines_that_is_set_cuts_the_message():
    """Below 8 chunks of 512 KiB a message has chunks of half of it, from there on whole ones (addP2pToPlan)."""
    cut = [message(n, 1, 1, network=True, many_nodes=True, net_chunk=512 * KIB).chunk for n in (2**21, 2**22, 2**23)]
    assert cut == [256 * KIB, 512 * KIB, 512 * KIB]
    assert message(2**23, 1, 1, network=True, many_nodes=True).chunk == 128 * KIB
    inside = {"network": False, "many_nodes": False}
    assert message(2**23, 1, 1, net_chunk=2**20, **inside) == message(2**23, 1, 1, **inside)
