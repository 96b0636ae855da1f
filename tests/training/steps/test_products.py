"""Products of a layer, and the curve of a GPU over their sizes."""

import pytest

from commsim.training.gpus import PRODUCT_START, gpu
from commsim.training.steps.parallel_sizes import ParallelSizes
from commsim.training.steps.products import products_of
from commsim.training.steps.transformer import transformer

H100 = gpu("h100")


@pytest.mark.parametrize("name", ["llama3-8b", "gpt3-175b", "deepseek-v3", "qwen3-30b-a3b", "mpt-7b"])
def test_products_have_the_operations_of_the_parameters_that_a_token_passes(name):
    model = transformer(name)
    wanted = 2 * 4096 * (model.dense_active + model.expert_active)
    assert sum(one.operations for one in products_of(model, ParallelSizes(), 4096)) == pytest.approx(wanted, rel=0.01)


def test_tensor_parallelism_divides_operations_and_keeps_a_whole_kv_head():
    model = transformer("llama3-8b")
    whole, eight, sixteen = (
        sum(one.operations for one in products_of(model, ParallelSizes(tensor=t, data=16 // t), 4096))
        for t in (1, 8, 16)
    )
    assert eight == pytest.approx(whole / 8)
    assert sixteen > 1.01 * whole / 16


def test_large_products_reach_the_share_of_the_peak_and_small_ones_less():
    def rate(m, n=4096, k=4096):
        return 2 * m * n * k / H100.product_time(2 * m * n * k, 2 * (m * n + n * k + m * k), "bf16") / H100.peak("bf16")

    assert rate(1 << 17) == pytest.approx(0.732, rel=0.01)
    assert rate(64) < rate(512) < rate(4096) < rate(1 << 17)
    assert H100.product_time(0, 0, "bf16") == PRODUCT_START


@pytest.mark.parametrize(
    ("m", "k", "n", "measured"),
    [(128, 4096, 4096, 303e12), (512, 4096, 1024, 429e12), (2048, 4096, 14336, 705e12), (8192, 8192, 28672, 735e12)],
)
def test_the_curve_passes_measured_products(m, k, n, measured):
    """Rows of docs/data/gpus.md."""
    time = H100.product_time(2 * m * k * n, 2 * (m * k + k * n + m * n), "bf16")
    assert 2 * m * k * n / time == pytest.approx(measured, rel=0.15)
