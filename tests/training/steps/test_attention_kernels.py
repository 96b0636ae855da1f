"""Kernels of attention: which are usual, what they take, and what scores in memory cost."""

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
