"""Launches of layers with experts, copies of tokens, and what hides the exchanges of experts."""

import pytest

import commsim as cs
from commsim.training.gpus import gpu
from commsim.training.steps.exchange_of_step import copies_of_token
from commsim.training.steps.launches import (
    CALLS_BACKWARD,
    CALLS_FORWARD,
    CASTS,
    ELEMENTWISE_LAUNCH,
    LAUNCH,
    PRODUCT_LAUNCH,
    expert_launches,
)
from commsim.training.steps.parallel_sizes import ParallelSizes
from commsim.training.steps.step_costs import INTERFERENCE
from commsim.training.steps.step_setting import HIDDEN, StepSetting
from commsim.training.steps.transformer import transformer

ASKED = {"ranks": 8, "ep": 8, "global_batch": 16, "micro_batch": 1, "sequence": 4096, "factor": 1.0, "overhead": "0us",
         "ignore_memory": True}  # fmt: skip


def launched(model="qwen3-30b-a3b", expert=8, **more):
    """Seconds of both passes of a layer on eight ranks."""
    layout = ParallelSizes(data=8, expert=expert)
    setting = StepSetting(transformer(model), gpu("h100"), layout, 1, 16, 4096, **more)
    return sum(expert_launches(setting, backward=backward) for backward in (False, True))


def step(**more):
    return cs.training_step("qwen3-30b-a3b", "h100", **(ASKED | more))


def test_launches_are_counted_for_the_layer_and_for_each_expert_of_a_rank():
    """128 experts on 8 ranks: 16 of a rank, each with six products, and four casts below BF16."""
    layer, products = (CALLS_FORWARD + CALLS_BACKWARD) * LAUNCH, 6 * PRODUCT_LAUNCH
    assert launched(precision="bf16") == pytest.approx(layer + 16 * products)
    assert launched(precision="fp8") == pytest.approx(layer + 16 * (products + 2 * CASTS * ELEMENTWISE_LAUNCH))
    assert launched(precision="fp8", graphs=True) == 0
    assert launched("llama3-8b", expert=1) == 0


def test_products_of_all_experts_are_one_kernel_with_full_sharding():
    """torch._grouped_mm: NeMo AutoModel's steps were 35 to 52 % too slow with launches of each expert."""
    layer = (CALLS_FORWARD + CALLS_BACKWARD) * LAUNCH
    assert launched(sharding="full") == pytest.approx(layer + 6 * PRODUCT_LAUNCH)
    assert launched(expert=1, sharding="full") == launched(expert=8, sharding="full")


def test_a_step_takes_its_launches_longer_than_one_that_is_a_graph():
    """Two micro-batches of 48 layers on each rank; a hidden exchange of gradients is as long in both."""
    assert step().time - step(graphs=True).time == pytest.approx(2 * 48 * launched(), rel=0.02)


def test_a_graph_has_no_effect_without_experts():
    asked = {"ranks": 8, "global_batch": 8, "factor": 1.0, "tp": 2}
    usual, graph = (cs.training_step("llama3-8b", "h100", graphs=graphs, **asked) for graphs in (False, True))
    assert usual.time == graph.time


def test_a_token_is_sent_once_to_each_rank_of_a_machine_and_once_to_each_machine():
    assert copies_of_token(8, 1, 8) == pytest.approx(8 * (1 - (7 / 8) ** 8))
    assert copies_of_token(8, 1, 64) == pytest.approx(7.57, abs=0.01)
    assert copies_of_token(8, 4, 32) == pytest.approx(4 * (1 - (3 / 4) ** 8))
    assert copies_of_token(1, 1, 8) == pytest.approx(1)


def test_exchanges_of_experts_that_hide_still_disturb_the_computation():
    apart, hidden = step(), step(overlap=(*HIDDEN, "expert"))
    assert hidden.exposed["expert"] == pytest.approx(INTERFERENCE * apart.exposed["expert"], rel=1e-6)
    assert hidden.hidden["expert"] > 0 == pytest.approx(apart.hidden["expert"], abs=1e-9)


def test_the_command_names_graphs_attention_and_hidden_experts(commsim):
    asked = ["workload", "step", "--model", "qwen3-30b-a3b", "--gpu", "h100", "--ranks", 8, "--ep", 8]
    asked += ["--global-batch", 16, "--sequence", 4096, "--factor", 1.0, "--overhead", "0us", "--ignore-memory"]
    row = commsim.results(*asked, "--graphs", "--hide-experts", "--attention", "flash")["results"][0]
    own = step(graphs=True, overlap=(*HIDDEN, "expert"), attention="flash")
    assert row["step_s"] == own.time < step(attention="flash").time
