"""Collectives that list a message for every pair refuse too many ranks before they write the first."""

import tracemalloc

import pytest

import commsim as cs


@pytest.mark.parametrize(
    ("name", "servers"),
    [("agsparse", {}), ("topk_a", {}), ("parallax", {"n_servers": 10_000}), ("sparcml_split", {}),
     ("direct_all_to_all_v", {}), ("nccl_all_to_all_v", {})],
)  # fmt: skip
def test_too_many_ranks_are_refused_before_memory_is_taken(name, servers):
    build = cs.COLLECTIVES[name].build
    tracemalloc.start()
    try:
        with pytest.raises(cs.InputError, match="lists at most 33554432 transfers one by one"):
            build(10_000, **servers)
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()
