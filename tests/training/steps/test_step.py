"""Training steps: what they reduce to without traffic, and what traffic and faults add."""

from dataclasses import replace

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.sweep.compute import Bench
from commsim.training.gpus import gpu
from commsim.training.steps.ask import traffic_on
from commsim.training.steps.calibration import CalibrationFactor, calibration_for
from commsim.training.steps.parallel_sizes import ParallelSizes
from commsim.training.steps.predicted_step import predict_step
from commsim.training.steps.roofline import head_time, layer_times, optimizer_time
from commsim.training.steps.step_costs import StepCosts
from commsim.training.steps.step_interval import spread_of
from commsim.training.steps.step_setting import StepSetting
from commsim.training.steps.transformer import transformer

H100, LLAMA = gpu("h100"), transformer("llama3-8b")
SMALL = {"ranks": 64, "global_batch": 64, "factor": 1.0}


def step_of(layout, batch=8, network="dgx-h100", **more):
    setting = StepSetting(LLAMA, H100, layout, 1, batch, 8192, "fp8", **more)
    return predict_step(setting, traffic_on(cs.load_network(network), layout.n_ranks))


def test_on_one_gpu_a_step_is_the_roofline_of_its_passes_and_the_optimizer():
    layout = ParallelSizes()
    layer, head = layer_times(LLAMA, H100, layout, 1, 8192, "fp8"), head_time(LLAMA, H100, layout, 1, 8192)
    passes = 32 * (layer.forward + layer.backward(frozen=False)) + 3 * head
    step = step_of(layout, factor=1.5)
    assert step.time == pytest.approx(8 * 1.5 * passes + optimizer_time(H100, LLAMA.total, LLAMA.total), rel=1e-9)
    assert step.time == pytest.approx(step.compute)
    assert sum(step.exposed.values()) == step.bubble == 0


def alone(order, m, p=4, v=1, **more):
    """A step without traffic, and its costs; the model has no head, so that its parts are alike."""
    layout = ParallelSizes(pipeline=p, chunks=v, **more)
    batch = m * layout.data
    setting = StepSetting(replace(LLAMA, vocab=1), H100, layout, 1, batch, 8192, "bf16", schedule=order)
    costs = StepCosts(setting, traffic_on(cs.load_network("dgx-h100"), layout.n_ranks))
    return costs.step(frozenset()) - costs._update(), costs


@pytest.mark.parametrize("m", [4, 8, 40])
@pytest.mark.parametrize(("order", "v"), [("gpipe", 1), ("1f1b", 1), ("eager_1f1b", 1), ("interleaved", 2)])
def test_bubbles_of_a_step_are_those_of_its_order(order, v, m):
    """(p - 1) / (m + p - 1) of gpipe and 1F1B, with v parts on each stage (p - 1) / (v m + p - 1)."""
    time, costs = alone(order, m, v=v)
    assert (time - costs.busiest() + costs._update()) / time == pytest.approx(3 / (v * m + 3), rel=2e-3)


def test_two_copies_of_the_model_have_their_own_bubbles():
    """Chimera's one unit of p micro-batches, backward twice as long: (p-2)/(3m/2+p-2); gems comes to (p-1)/(p+1/2)."""
    shares = []
    for order, m in (("chimera", 4), ("gems", 400)):
        time, costs = alone(order, m)
        shares.append(1 - (costs.busiest() - costs._update()) / time)
    assert shares == pytest.approx([2 / 8, 3 / 4.5], rel=0.03)


def test_many_micro_batches_of_any_order_are_extrapolated_to_what_the_whole_takes():
    for order in ("gpipe", "eager_1f1b", "gems", "chimera"):
        time, costs = alone(order, 20)
        assert time == pytest.approx(costs._simulated(20, frozenset()) - costs._update(), rel=1e-9), order


def test_the_usual_order_is_1f1b_or_with_several_parts_interleaved():
    for order, chunks in (("1f1b", 1), ("interleaved", 2)):
        layout = ParallelSizes(pipeline=4, chunks=chunks, data=2)
        usual, named = step_of(layout, batch=16), step_of(layout, batch=16, schedule=order)
        assert (usual.row(), usual.setting.order) == (named.row(), order)
    assert step_of(ParallelSizes(data=2)).row()["schedule"] is None


def test_copies_of_the_model_reduce_their_gradients_with_each_other():
    """Without data parallelism two copies are two ranks that hold a parameter; each holds two parts of the model."""
    one, two = (step_of(ParallelSizes(pipeline=4), schedule=order) for order in ("1f1b", "chimera"))
    assert one.exposed["data"] + one.hidden["data"] == 0 < two.exposed["data"]
    costs = two.costs
    assert costs.setting.groups("data") == ((0, 3), (1, 2))
    assert costs.setting.groups("tensor") == two.setting.layout.groups("tensor")
    assert [sum(weights) for weights in costs._of_stages()] == pytest.approx(
        [sum(one.costs._of_stages()[w]) + sum(one.costs._of_stages()[3 - w]) for w in range(4)]
    )
    assert len(two.job().phases) > 1


@pytest.mark.parametrize(
    ("layout", "order", "told"),
    [
        (ParallelSizes(), "gpipe", "schedule gpipe orders the passes of a pipeline, and pp is 1"),
        (ParallelSizes(pipeline=2), "zero", "unknown pipeline schedule 'zero'; known: gpipe, 1f1b"),
        (ParallelSizes(pipeline=2, chunks=2), "gpipe", "vp of 2 or more; got gpipe and 2"),
        (ParallelSizes(pipeline=2), "interleaved", "vp of 2 or more; got interleaved and 1"),
        (ParallelSizes(pipeline=3), "chimera", "chimera needs an even number of workers"),
    ],
)
def test_orders_that_a_step_cannot_have_are_refused(layout, order, told):
    with pytest.raises(InputError, match=told):
        step_of(layout, schedule=order)


def test_many_micro_batches_are_extrapolated_to_what_the_whole_pipeline_takes():
    setting = StepSetting(LLAMA, H100, ParallelSizes(pipeline=4, chunks=2), 1, 24, 8192, "fp8")
    costs = StepCosts(setting, traffic_on(cs.load_network("dgx-h100"), 4))
    kinds = frozenset({"pipeline"})
    assert costs.step(kinds) == pytest.approx(costs._simulated(24, kinds), rel=1e-9)


@pytest.mark.parametrize(
    ("layout", "kind"),
    [(ParallelSizes(tensor=8), "tensor"), (ParallelSizes(pipeline=4, chunks=2), "pipeline"),
     (ParallelSizes(data=8), "data"), (ParallelSizes(context=8), "data")],
)  # fmt: skip
def test_what_a_kind_exposes_is_less_hidden_than_not(layout, kind):
    hidden = step_of(layout)
    apart = step_of(layout, overlap=())
    assert 0 < hidden.exposed[kind] < apart.exposed[kind]
    assert hidden.time <= apart.time


@pytest.mark.parametrize(
    ("layout", "kind"),
    [(ParallelSizes(tensor=8), "tensor"), (ParallelSizes(context=4), "context"), (ParallelSizes(data=8), "data")],
)
def test_what_is_hidden_is_the_rest_of_what_is_exposed_without_overlap(layout, kind):
    """Without overlap and pipeline a step takes all of its traffic longer, so nothing is hidden."""
    apart, usual = step_of(layout, overlap=()), step_of(layout)
    assert apart.hidden[kind] == pytest.approx(0.0, abs=1e-9 * apart.time)
    assert usual.hidden[kind] > 0
    assert usual.hidden[kind] + usual.exposed[kind] == pytest.approx(apart.exposed[kind], rel=1e-9)


def test_experts_expose_traffic_and_outside_of_a_machine_more():
    inside, outside = (
        cs.training_step(
            "qwen3-30b-a3b",
            "h100",
            network,
            ranks=16,
            ep=ep,
            global_batch=16,
            sequence=4096,
            factor=1.0,
            overhead="0us",
        )
        for network, ep in (("dgx-h100@star:machines=2", 8), ("dgx-h100@star:machines=2", 16))
    )
    assert 0 < inside.exposed["expert"] < outside.exposed["expert"]


def test_oversubscription_and_dead_switches_cost_a_step_what_they_cost_its_collectives():
    two = "dgx-h100@leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=8,uplinks_per_spine=2"
    asked = {"ranks": 16, "global_batch": 16, "factor": 1.0}
    whole = cs.training_step("llama3-8b", "h100", two, **({"overhead": "0us"} | asked))
    over = cs.training_step("llama3-8b", "h100", f"{two},uplink_bandwidth=12.125GB/s", **({"overhead": "0us"} | asked))
    slow = cs.training_step("llama3-8b", "h100", two, scale=["link:leaf*:spine*=0.25"], **({"overhead": "0us"} | asked))
    dead = cs.training_step(
        "llama3-8b", "h100", two, fail=[f"switch:spine{i}" for i in (1, 2, 3)], **({"overhead": "0us"} | asked)
    )
    assert over.time == pytest.approx(slow.time)
    assert whole.time < min(over.time, dead.time)
    assert over.exposed["data"] / whole.exposed["data"] > 1.5 < dead.exposed["data"] / whole.exposed["data"]
    assert whole.compute == over.compute


def test_no_other_models_factor_stands_in_for_one():
    """What programs lose is a median: without the model itself, and of models with or without experts."""
    known = tuple(
        CalibrationFactor(model, "h100", "fp8", "", factor, "row")
        for model, factor in (("llama3-8b", 9.0), ("llama3-70b", 1.0), ("llama2-7b", 1.2), ("gpt3-175b", 1.6),
                              ("gpt3-175b", 1.4), ("mixtral-8x7b", 3.0))
    )  # fmt: skip
    assert calibration_for("llama3-8b", "a100", "bf16", known=known).factor == 1.2
    assert calibration_for("qwen3-30b-a3b", "a100", "bf16", known=known).factor == 3.0
    assert calibration_for("qwen3-8b", "a100", "bf16", known=()).of == "nothing"


def test_what_programs_lose_is_of_the_gpus_generation_where_enough_models_are_calibrated_there():
    """Three A100 models at 1.1 and five of others at 1.5: an A100 takes its own median."""
    near = [("llama3-8b", 1.0), ("llama3-70b", 1.1), ("llama2-13b", 1.2)]
    far = [(model, 1.5) for model in ("llama3-8b", "llama3-70b", "llama3-405b", "gpt3-175b", "llama2-7b")]
    known = tuple(
        CalibrationFactor(model, name, "bf16", "", factor, "row")
        for name, models in (("a100", near), ("b200", far)) for model, factor in models
    )  # fmt: skip
    assert calibration_for("qwen3-8b", "a100", "bf16", known=known).factor == 1.1
    assert "3 models without experts on ampere GPUs" in calibration_for("qwen3-8b", "a100", "bf16", known=known).text
    assert calibration_for("qwen3-8b", "b300", "bf16", known=known).factor == 1.5
    assert calibration_for("qwen3-8b", "h100", "bf16", known=known).factor == 1.4  # none there: all, of each its median
    two = tuple(one for one in known if (one.model, one.gpu) != ("llama2-13b", "a100"))
    assert calibration_for("qwen3-8b", "a100", "bf16", known=two).factor == 1.5


def sharded(layout, batch=None, gpu_name=H100, network="dgx-h100@star:machines=2", **more):
    n = batch or layout.data
    setting = StepSetting(LLAMA, gpu_name, layout, 1, n, 2048, "bf16", sharding="full", recompute=1.0, **more)
    return predict_step(setting, traffic_on(cs.load_network(network), layout.n_ranks))


def test_full_sharding_exposes_the_first_gathering_and_the_last_reduction_of_every_micro_batch():
    layout = ParallelSizes(data=16)
    one, two = sharded(layout), sharded(layout, 32)
    costs = one.costs
    ends = costs._of_one_layer("all_gather", 0) + costs._of_one_layer("all_gather", costs.n_parts - 1)
    ends += costs._of_one_layer("reduce_scatter", 0)
    assert one.exposed["data"] > ends > 0
    assert two.exposed["data"] == pytest.approx(2 * one.exposed["data"], rel=1e-6)


def test_slow_gathering_takes_the_place_of_computation():
    """Where a layer takes longer to gather than to compute, a step takes what is sent."""
    slow = sharded(ParallelSizes(data=16), network="dgx-h100@star:machines=2,bandwidth=1Gbps")
    sent = sum(slow.costs._layers) * slow.costs._of_one_layer("all_gather", 1)
    assert slow.time > 2.9 * sent > 20 * slow.compute


def test_sharding_inside_of_machines_differs_from_sharding_over_all():
    over, inside = sharded(ParallelSizes(data=16)), sharded(ParallelSizes(data=16, replicas=2))
    assert inside.exposed["data"] != pytest.approx(over.exposed["data"], rel=0.02)
    assert inside.hidden["data"] > 0


def test_full_sharding_reduces_gradients_in_fp32_and_others_in_bf16():
    """As PyTorch's programs and Megatron-LM do; a row that says otherwise is taken at its word."""
    layout = ParallelSizes(data=8)
    sizes = {}
    for sharding, given in (("full", 0), ("optimizer", 0), ("full", 2)):
        setting = StepSetting(LLAMA, H100, layout, 1, 8, 8192, "bf16", sharding=sharding, gradient_bytes=given)
        costs = StepCosts(setting, traffic_on(cs.load_network("dgx-h100"), 8))
        sizes[sharding, given] = costs._of_parameters("reduce_scatter", 1)[0].size
    assert sizes["full", 0] == 2 * sizes["optimizer", 0] == 2 * sizes["full", 2]


def test_fp4_hides_no_tensor_parallel_exchange_behind_its_products():
    """No program overlaps them; with BF16 all but one piece hides."""
    four, sixteen = (
        cs.training_step("llama3-8b", "b200", ranks=8, tp=8, global_batch=8, precision=p) for p in ("fp4", "bf16")
    )
    assert four.hidden["tensor"] == pytest.approx(0, abs=1e-9)
    assert sixteen.hidden["tensor"] > sixteen.exposed["tensor"] > 0
    assert ["tensor-exposed" in {note.code for note in step.notes} for step in (four, sixteen)] == [True, False]


def test_an_exchange_larger_than_one_call_is_equal_calls_one_after_the_other(monkeypatch):
    traffic, groups = traffic_on(cs.load_network("dgx-h100@star:machines=2"), 16), (tuple(range(16)),)
    each = traffic.time("all_gather", groups, 2**20)
    on_links = traffic.link_bytes("all_gather", groups, 2**20)
    whole = traffic.time("all_gather", groups, 3 * 2**20)
    monkeypatch.setattr("commsim.training.steps.step_traffic.MAX_CALL", 2**20)
    cut = traffic_on(cs.load_network("dgx-h100@star:machines=2"), 16)
    assert cut.time("all_gather", groups, 3 * 2**20) == pytest.approx(3 * each)
    assert 3 * each > whole
    assert cut.link_bytes("all_gather", groups, 3 * 2**20) == pytest.approx({k: 3 * n for k, n in on_links.items()})


def test_the_interval_is_that_of_published_steps_and_a_given_factor_has_none():
    asked = {"ranks": 8, "global_batch": 8, "precision": "fp8", "sharding": "full"}
    own, other = (cs.training_step(model, "h100", **asked) for model in ("llama3-8b", "qwen3-8b"))
    for step, calibrated in ((own, True), (other, False)):
        spread = spread_of(calibrated=calibrated, experts=False)
        assert step.interval == pytest.approx((spread[0] * step.time, spread[1] * step.time))
        assert step.interval[0] < step.time < step.interval[1]
        assert (step.row()["low_s"], step.row()["high_s"]) == step.interval
    assert cs.training_step("llama3-8b", "h100", factor=1.2, **asked).interval is None


def test_ranks_of_all_kinds_are_divided_into_groups():
    layout = ParallelSizes(tensor=2, pipeline=2, context=2, data=4, expert=8, replicas=2)
    sizes = {"tensor": 2, "context": 2, "data": 4, "replica": 2, "expert": 8, "expert_data": 1, "expert_replica": 2}
    for kind, size in sizes.items():
        groups = layout.groups(kind)
        assert {len(group) for group in groups} == {size}
        assert sorted(rank for group in groups for rank in group) == list(range(32))


def test_experts_are_sharded_inside_of_a_replica_as_all_else_is():
    """An expert that has one rank in each replica is not gathered: measured, 10.7 s in place of 14.2 s.

    Both are predicted too slow by the calibration of another precision; their ratio is what sharding costs, which with
    gradients in BF16 would be 1.15.
    """
    step = {"model": "qwen3-30b-a3b", "gpu": "h100", "ranks": 64, "pp": 4, "ep": 8, "micro_batch": 1,
            "global_batch": 1024, "sequence": 4096, "precision": "bf16", "sharding": "full"}  # fmt: skip
    over, inside = cs.training_step(**step), cs.training_step(**step, replicas=2)
    assert over.time / inside.time == pytest.approx(14.2 / 10.7, rel=0.05)
    assert inside.time == pytest.approx(10.7, rel=0.12)
    assert inside.exposed["data"] < 0.2 * over.exposed["data"]
    assert ParallelSizes(data=16, expert=8, replicas=2).groups("expert_data")[:2] == ((0,), (1,))
    assert ParallelSizes(data=16, expert=16, replicas=2).groups("expert_replica")[0] == (0,)
    assert ParallelSizes(data=16, expert=4, replicas=2).groups("expert_data")[0] == (0, 4)
    with pytest.raises(InputError, match="expert must divide the 12 ranks of a replica, or be a multiple of them"):
        ParallelSizes(data=24, expert=8, replicas=2)


def test_a_setup_without_a_calibration_takes_the_nearest_and_says_so():
    assert calibration_for("llama3-405b", "h100", "fp8").of == "setup"
    assert calibration_for("llama3-405b", "gb300", "fp8").of == "usual"
    assert "as in the median of" in calibration_for("qwen3-8b", "h100", "fp8").text
    other = calibration_for("llama3-70b", "h100", "bf16").text
    assert "times the roofline's, calibrated with another precision than bf16 (fp8): " in other


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tp": 3}, "ranks must be a multiple of tp x pp x cp = 3, got 64"),
        ({"global_batch": 65}, "global batch must be a multiple of data parallel x micro-batch = 64 x 1, got 65"),
        ({"tp": 0}, "tp must be 1 or more, got 0"),
        ({"ep": 8}, "expert must be 1, since llama3-8b has no experts, got 8"),
        ({"tp": 3, "ranks": 63, "global_batch": 63}, "tensor must divide the 32 heads of llama3-8b, got 3"),
        ({"tp": 64}, "tensor must divide the 32 heads of llama3-8b, got 64"),
        ({"cp": 2, "sequence": 8191}, "sequence must be a multiple of context x tensor = 2, got 8191"),
        ({"pp": 2, "vp": 64}, "pipeline x chunks must be at most the model's 32 layers"),
        ({"factor": float("nan")}, "factor must be above 0 and finite, got nan"),
        ({"precision": "fp4"}, "precision of h100 must be one of fp8, bf16, tf32, fp32, got 'fp4'"),
        ({"sharding": "half"}, "sharding must be optimizer, full or none, got 'half'"),
    ],
)
def test_what_does_not_fit_is_one_line(more, message):
    with pytest.raises(InputError, match=message):
        cs.training_step("llama3-8b", "h100", **({"overhead": "0us"} | SMALL | more))


@pytest.mark.parametrize(
    ("accelerator", "machine"), [("h100", "dgx-a100"), ("a100", "dgx-h100"), ("mi300x", "dgx-h100")]
)
def test_another_gpu_than_the_machines_have_is_refused(accelerator, machine):
    asked = {"global_batch": 64, "tp": 4, "ranks": 8}
    with pytest.raises(InputError, match=f"gpu {accelerator} is .*, and the machines of {machine}.* have GPUs of"):
        cs.training_step("llama3-8b", accelerator, machine, **asked)
    assert cs.training_step("llama3-8b", "h200", "dgx-h100", **asked).time > 0
    with pytest.raises(InputError, match="have GPUs of"):
        point = {"topology.name": machine, "workload.model": "llama3-8b", "workload.gpu": accelerator}
        Bench({"topology.name": "text"}).row(0, point | {f"workload.{key}": value for key, value in asked.items()})
