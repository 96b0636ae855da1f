"""Memory of a step: bytes of each part in closed form, and what does not fit."""

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.training.gpus import gpu
from commsim.training.steps.memory import memory_of
from commsim.training.steps.parallel_sizes import ParallelSizes
from commsim.training.steps.step_setting import StepSetting
from commsim.training.steps.transformer import transformer

LLAMA = transformer("llama3-8b")
ASKED = {"ranks": 64, "global_batch": 64, "precision": "bf16"}


def memory(layout, **more):
    return memory_of(StepSetting(LLAMA, gpu("h100"), layout, 1, 8 * layout.data, 8192, "bf16", **more))


def test_mixed_precision_with_adam_takes_sixteen_bytes_for_each_parameter():
    need = memory(ParallelSizes(), sharding="none")
    assert need.weights == need.gradients == 2 * LLAMA.total
    assert need.weights + need.gradients + need.optimizer == pytest.approx(16 * LLAMA.total)


def test_data_parallel_ranks_divide_the_optimizer_and_with_full_sharding_all_of_it():
    optimizer, full = (memory(ParallelSizes(data=8), sharding=kind) for kind in ("optimizer", "full"))
    assert optimizer.optimizer == full.optimizer == pytest.approx(12 * LLAMA.total / 8)
    assert optimizer.weights == 2 * LLAMA.total
    assert full.gradients == pytest.approx(2 * LLAMA.total / 8)
    assert full.weights == pytest.approx(2 * LLAMA.total * (1 / 8 + 2 / 32))  # two layers are whole
    assert memory(ParallelSizes(data=8, replicas=4), sharding="full").optimizer == pytest.approx(6 * LLAMA.total)


def test_activations_computed_again_leave_the_input_of_each_layer():
    again, kept = memory(ParallelSizes(), recompute=1.0), memory(ParallelSizes())
    inputs = 32 * 2 * 8192 * 4096
    one_layer = kept.activations / 32
    assert again.activations == pytest.approx(inputs + one_layer)


def test_the_first_stage_keeps_a_micro_batch_for_each_stage():
    assert memory(ParallelSizes(pipeline=4)).activations == pytest.approx(memory(ParallelSizes()).activations)


def test_activations_are_those_of_the_micro_batches_that_an_order_has_under_way():
    """Of 8 micro-batches on 4 stages: 4 with 1F1B, all with gpipe, 7 with eager 1F1B, one part of one with gems."""
    usual = memory(ParallelSizes(pipeline=4)).activations
    of = {order: memory(ParallelSizes(pipeline=4), schedule=order) for order in ("1f1b", "gpipe", "eager_1f1b", "gems")}
    held = {order: need.activations / usual * 4 for order, need in of.items()}
    assert held == pytest.approx({"1f1b": 4, "gpipe": 8, "eager_1f1b": 7, "gems": 1})
    assert of["gems"].weights > 1.9 * of["1f1b"].weights
    assert of["gems"].optimizer == pytest.approx(of["1f1b"].optimizer, rel=0.1)


def test_gpipe_keeps_as_many_as_there_are():
    many = StepSetting(LLAMA, gpu("h100"), ParallelSizes(pipeline=4), 1, 4000, 8192, "bf16", schedule="gpipe")
    assert memory_of(many).activations == pytest.approx(1000 * memory(ParallelSizes(pipeline=4)).activations)


def test_what_fits_in_no_way_is_refused_with_the_amounts_unless_asked_for():
    with pytest.raises(InputError, match=r"llama3-70b with tp 1, pp 1, .*: a rank needs .*\(weights 131.4 GiB"):
        cs.training_step("llama3-70b", "h100", **ASKED)
    assert cs.training_step("llama3-70b", "h100", **ASKED, ignore_memory=True).time > 0


def test_what_fits_only_with_activations_computed_again_is_refused_by_that_name():
    """10.14 s were printed of a step that needs 187 of 75 GiB; its last line said so."""
    full = {**ASKED, "sharding": "full"}
    with pytest.raises(InputError, match=r"needs 187.2 GiB of 74.51 GiB \(weights .*\); --recompute fits: .*--ignore"):
        cs.training_step("llama3-70b", "h100", **full)
    again = cs.training_step("llama3-70b", "h100", **full, recompute=True)
    assert cs.training_step("llama3-70b", "h100", **full, ignore_memory=True).time < again.time


def test_a_step_computes_in_bf16_unless_told():
    asked = {"ranks": 64, "global_batch": 64, "tp": 8}
    step = cs.training_step("llama3-8b", "h100", **asked)
    assert step.time == cs.training_step("llama3-8b", "h100", **asked, precision="bf16").time
    assert step.time > cs.training_step("llama3-8b", "h100", **asked, precision="fp8").time


@pytest.mark.parametrize(("tp", "said"), [(8, False), (16, True)])
def test_tensor_parallelism_above_the_kv_heads_is_said(tp, said):
    step = cs.training_step("llama3-8b", "h100", **ASKED, tp=tp)
    assert ("kv-heads" in [note.code for note in step.notes]) == said
