import math

import pytest
from nccl_settings import setting

from commsim.nccl.nccl_setting import Channels
from commsim.nccl.symmetric_kernels import kernels, why_none

NVLS = Channels(8, 40e9, 40e9)


def best(size, operation="all_reduce", **more):
    return kernels(setting(8, 1, nvls=NVLS, **more), operation, size)[0]


def test_small_sizes_take_ll_and_large_ones_add_in_the_switch():
    assert best(1024).name == "AllReduce_AGxLLMC_R"
    assert best(2**20).name == best(2**30).name == "AllReduce_RSxLDMC_AGxSTMC"
    assert best(1024, "all_gather").name == "AllGather_LLMC"
    assert best(2**30, "reduce_scatter").name == "ReduceScatter_LDMC"


@pytest.mark.parametrize(("n", "adds"), [(1, False), (2, True)])
def test_the_switch_adds_with_two_channels_of_nvlink_sharp_or_more(n, adds):
    found = kernels(setting(8, 1, nvls=Channels(n, 40e9, 40e9)), "all_reduce", 2**30)
    assert any("MC" in kernel.name for kernel in found) == adds


def test_without_nvlink_sharp_gpus_read_and_write_each_other():
    found = kernels(setting(8, 1), "all_reduce", 2**30)
    assert [kernel.name for kernel in found] == ["AllReduce_RSxLD_AGxST", "AllReduce_AGxLL_R"]


@pytest.mark.parametrize(("gpu", "peak"), [("hopper", 480), ("blackwell", 1000)])
def test_a_long_all_reduce_in_the_switch_approaches_the_peak(gpu, peak):
    # of each byte one goes out and an eighth comes back; 2.5 % are given away for fewer blocks
    rate = 2**33 * 9 / 8 / best(2**33, gpu=gpu).time / 2**30
    assert peak / 1.026 <= rate <= peak


def test_the_least_time_of_ll_is_its_base_and_the_smooth_excess():
    # no bytes: log(1 + 1/e) of a microsecond is left of the smooth maximum
    kernel = best(8)
    assert kernel.time * 1e6 == pytest.approx(4.5 + math.log1p(math.exp(-1)), rel=0.026)
    assert kernel.blocks == 1


def test_counters_of_32_bits_end_ll_and_then_all():
    assert all("LL" not in kernel.name for kernel in kernels(setting(8, 1), "all_reduce", 2**31))
    assert kernels(setting(8, 1), "all_reduce", 2**36) == ()
    assert kernels(setting(8, 1), "broadcast", 1024) == ()


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (setting(8, 1, version=(2, 26)), "since 2.27"),
        (setting(8, 1, gpu="ampere"), "Hopper and Blackwell"),
        (setting(16, 2), "between nodes"),
        (setting(8, 1, path_intra="PHB"), "NVLink between all GPUs"),
        (setting(8, 1), ""),
    ],
)
def test_where_there_are_none_the_reason_is_said(where, why):
    assert why in why_none(where)
    assert bool(why_none(where)) == (not kernels(where, "all_reduce", 1024))
