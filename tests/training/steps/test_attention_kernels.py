"""Kernels of attention: which are usual, what they take, and what scores in memory cost."""

from dataclasses import replace

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.training.gpus import gpu
from commsim.training.steps.memory import memory_of
from commsim.training.steps.parallel_sizes import ParallelSizes
from commsim.training.steps.roofline import SCORE_BYTES, SCORE_BYTES_BACKWARD, layer_times
from commsim.training.steps.step_setting import StepSetting
from commsim.training.steps.transformer import transformer

GPT, A100 = transformer("megatron-145.6b"), gpu("a100")
ASKED = {"ranks": 8, "global_batch": 8, "factor": 1.0, "overhead": "0us", "recompute": True}


def of(kernels, sequence=2048, accelerator=A100):
    return layer_times(GPT, accelerator, ParallelSizes(tensor=8), 1, sequence, "bf16", kernels)


def test_scores_in_memory_are_moved_and_their_products_take_the_whole_square():
    found = of("unfused")
    scores = 2048 * 2048 * GPT.heads / 8
    product = 4 * 2048 * 2048 * GPT.heads * GPT.head_dim / 8 / (A100.peak("bf16") * A100.reach("bf16"))
    assert found.attention == pytest.approx(product + SCORE_BYTES * scores / A100.memory_rate)
    assert found.attention_backward == pytest.approx(2 * product + SCORE_BYTES_BACKWARD * scores / A100.memory_rate)
    assert found.products == of("fused").products


def test_each_kind_of_kernels_is_slower_than_the_one_after_it():
    on = gpu("h100")
    times = [of(kernels, accelerator=on) for kernels in ("unfused", "flash", "fused")]
    assert times[0].attention > times[1].attention > times[2].attention
    assert times[0].attention_backward > times[1].attention_backward > times[2].attention_backward


def test_full_sharding_has_pytorchs_kernels_in_every_precision_unless_others_are_named():
    """With FP8 it had those of Megatron, and torchtitan's steps of long sequences took half of the time measured."""
    usual, named = (
        cs.training_step("llama3-8b", "h100", sharding="full", precision="fp8", attention=kind, **ASKED)
        for kind in ("", "fused")
    )
    assert usual.time > named.time
    assert (
        cs.training_step("llama3-8b", "h100", attention="fused", **ASKED).time
        == cs.training_step("llama3-8b", "h100", **ASKED).time
    )


def test_scores_take_memory_too_and_an_unknown_kind_is_refused():
    def need(kernels):
        setting = StepSetting(GPT, A100, ParallelSizes(tensor=8), 1, 8, 2048, "bf16", kernels=kernels)
        return memory_of(setting).activations

    assert need("unfused") - need("fused") == pytest.approx(5 * GPT.heads * 2048 * 2048 / 8 * GPT.layers)
    with pytest.raises(InputError, match="attention must be fused, flash or unfused, got 'sparse'"):
        cs.training_step("llama3-8b", "h100", attention="sparse", **ASKED)


def test_each_score_takes_an_exponential_whatever_the_width_of_a_head():
    """Measured on an H100 (docs/data/gpus.md, cuDNN): heads of 64 at 401 and 358 TFLOP/s, of 128 at 532 and 425."""
    wide = replace(transformer("llama3-8b"), heads=16, kv_heads=16)
    narrow = replace(wide, heads=32, kv_heads=32, head_dim=64)
    of_wide, of_narrow = (layer_times(one, gpu("h100"), ParallelSizes(), 1, 4096, "bf16") for one in (wide, narrow))
    assert of_narrow.attention / of_wide.attention == pytest.approx(4 / 3) == pytest.approx(532 / 401, rel=0.01)
    backward = of_narrow.attention_backward / of_wide.attention_backward
    assert backward == pytest.approx(7 / 6) == pytest.approx(425 / 358, rel=0.02)
    flash = [
        layer_times(one, gpu("h100"), ParallelSizes(), 1, 4096, "bf16", "flash").attention for one in (wide, narrow)
    ]
    assert flash[0] == pytest.approx(flash[1])  # measured: 258 and 256


def test_biases_of_experts_are_added_in_memory():
    """Each of 64 bytes is moved once for every element that experts return."""
    with_bias = transformer("gpt-oss-120b")
    times = [
        layer_times(replace(with_bias, expert_bias=on), A100, ParallelSizes(), 1, 4096, "bf16") for on in (True, False)
    ]
    added = times[0].forward + times[0].backward(frozen=False) - times[1].forward - times[1].backward(frozen=False)
    assert added == pytest.approx(64 * 4096 * 4 * 2880 / A100.memory_rate)
