"""Channels and largest chunks of NVLink SHARP, and chunks of trees, as each release of NCCL has them."""

import pytest

from collectives.nccl.call import KIB, NcclCall
from collectives.nccl.nvls_sizes import nvls_sizes
from collectives.nccl.rules import chunk_bytes

MIB, GIB = 1024 * KIB, 1024**3


@pytest.mark.parametrize(
    ("gpu", "n_nodes", "version", "channels"),
    [
        ("hopper", 1, (2, 18), 16), ("hopper", 8, (2, 32), 16),
        ("blackwell", 1, (2, 25), 32), ("blackwell", 1, (2, 26), 32), ("blackwell", 1, (2, 27), 24),
        ("blackwell", 2, (2, 26), 32), ("blackwell", 2, (2, 29), 32),
    ],
)  # fmt: skip
def test_channels_by_release(gpu, n_nodes, version, channels):
    assert nvls_sizes(gpu, n_nodes, version).channels == channels


@pytest.mark.parametrize(
    ("n_nodes", "version", "said", "chunk", "tree"),
    [
        (2, (2, 18), 0, 128, 512), (8, (2, 18), 0, 128, 512), (8, (2, 19), 0, 128, 64), (2, (2, 20), 0, 128, 512),
        (2, (2, 21), 0, 128, 128), (4, (2, 32), 0, 128, 64),
        # aws-ofi-nccl says 512 KiB, which 2.19 does not read, and 2.20 only for trees
        (8, (2, 19), 512, 128, 64), (8, (2, 20), 512, 128, 512), (8, (2, 21), 512, 512, 512),
    ],
)  # fmt: skip
def test_largest_chunks_by_release_in_kib(n_nodes, version, said, chunk, tree):
    sizes = nvls_sizes("hopper", n_nodes, version, said=said * KIB)
    assert (sizes.chunk // KIB, sizes.tree_chunk // KIB) == (chunk, tree)


@pytest.mark.parametrize(
    ("n_nodes", "per_node", "nic", "near", "sizes"),
    [
        (2, 4, 50, True, (32, 256, 256)), (2, 8, 48, True, (32, 128, 64)), (2, 8, 100, True, (32, 128, 128)),
        (2, 8, 50, False, (32, 128, 128)), (2, 64, 50, False, (32, 128, 64)), (2, 8, 25, True, (32, 128, 128)),
        (4, 8, 100, True, (24, 256, 256)), (4, 16, 100, True, (32, 128, 128)), (4, 64, 100, False, (32, 128, 64)),
        (4, 8, 50, True, (24, 128, 64)), (4, 8, 50, False, (24, 128, 128)), (4, 8, 25, True, (32, 128, 64)),
    ],
)  # fmt: skip
def test_blackwell_s_by_nic_since_2_30(n_nodes, per_node, nic, near, sizes):
    """Rows of ncclNvlsTreeSm100Tuning; NICs of 200 Gb/s keep what was before."""
    found = nvls_sizes("blackwell", n_nodes, (2, 30), per_node=per_node, nic=nic * 1e9, near=near)
    assert (found.channels, found.chunk // KIB, found.tree_chunk // KIB) == sizes
    before = nvls_sizes("blackwell", n_nodes, (2, 29), per_node=per_node, nic=nic * 1e9, near=near)
    assert before == nvls_sizes("blackwell", n_nodes, (2, 29))


@pytest.mark.parametrize(
    ("size", "chunk"), [(32 * MIB, 64), (64 * MIB, 128), (512 * MIB, 256), (GIB, 256), (2 * GIB, 512), (16 * GIB, 512)]
)
def test_chunks_of_512_kib_are_for_calls_of_32_of_each_head(size, chunk):
    """16 channels of 8 heads: 128 x 512 KiB x 32 is 2 GiB, 128 x 256 KiB x 16 is 512 MiB, 128 x 128 KiB x 4 64 MiB."""
    call = NcclCall("all_reduce", size, 16, 2, "nvls_tree", "simple", 16, nvls_chunk=512 * KIB)
    assert chunk_bytes(call, size // 16) == chunk * KIB
    usual = NcclCall("all_reduce", size, 16, 2, "nvls_tree", "simple", 16)
    assert chunk_bytes(usual, size // 16) == min(chunk, 128) * KIB


@pytest.mark.parametrize(
    ("version", "size", "chunk"),
    [
        ((2, 20), MIB, 512),
        ((2, 19), MIB, 32),
        ((2, 19), 4 * MIB, 64),
        ((2, 19), 32 * MIB, 128),
        ((2, 19), 256 * MIB, 512),
    ],
)
def test_a_tree_with_simple_had_small_chunks_up_to_2_19(version, size, chunk):
    """Two machines of 8 have a depth of 7 + 1: 64 chunks of each of 8 channels down to 128 KiB, 32 to 64, 8 to 32."""
    call = NcclCall("all_reduce", size, 16, 2, "tree", "simple", 8, version)
    assert chunk_bytes(call, size // 8) == chunk * KIB
