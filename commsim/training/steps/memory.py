"""Memory of a step on the rank with most: weights, gradients, optimizer, and activations.

Mixed precision with Adam: weights and gradients in BF16, and for each parameter an FP32 weight and two moments, which
data parallel ranks divide unless nothing is sharded. Activations are what a layer keeps for its backward pass, with
kernels of attention that keep no scores; what is computed again keeps only the input of its layer. A stage of a
pipeline keeps those of as many micro-batches as its schedule has under way: with 1F1B as many as there are stages from
it to the last one.

References
----------
Korthikanti et al., "Reducing activation recomputation in large transformer models", MLSys 2023, sections 4 and 5 (34
bytes for each token and number of the width, less the masks of dropout); Rajbhandari et al., "ZeRO", SC 2020,
section 3.1 (16 bytes for each parameter).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from commsim.core.errors import InputError
from commsim.core.units import format_size
from commsim.training.parallel.pipeline_orders import order_of

from .parallel_sizes import layers_of_chunks
from .roofline import UNFUSED
from .step_setting import StepSetting
from .transformer import ACTIVATION

# Bytes of a parameter's FP32 weight and two moments.
ADAM = 12


@dataclass(frozen=True, slots=True)
class StepMemory:
    """Bytes on the rank with most.

    Parameters
    ----------
    weights, gradients, optimizer, activations : float, bytes
        What they take.
    capacity : float, bytes
        Memory of the accelerator.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float
    capacity: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations


def memory_of(setting: StepSetting) -> StepMemory:
    """Return the memory of the stage that needs most."""
    lay = setting.layout
    return max((_of_stage(setting, stage) for stage in range(lay.pipeline)), key=lambda one: one.total)


def check_memory(setting: StepSetting) -> None:
    """Refuse a step that does not fit in the memory of its accelerators, and name what would fit.

    Libraries compute parts of a layer again, or move activations away, so that what exceeds the memory by its
    activations alone can run: 36 of 288 published steps do. Which part is for the user to say.

    Raises
    ------
    InputError
        If it does not fit, naming the amounts.
    """
    need, again = memory_of(setting), memory_of(replace(setting, recompute=1.0))
    if need.total <= need.capacity:
        return
    fits = again.total <= again.capacity
    told = need if fits or need.total <= again.total else again
    parts = ", ".join(
        f"{name} {format_size(getattr(told, name))}"
        for name in ("weights", "gradients", "optimizer", "activations")
        if getattr(told, name)
    )
    lay = setting.layout
    how = f"{parts}, with all activations computed again" if told is again else parts
    mend = f"--recompute fits: {format_size(again.total)}; " if fits else ""
    raise InputError(
        f"{setting.model.name} with tp {lay.tensor}, pp {lay.pipeline}, sharding {setting.sharding} does not fit "
        f"on {setting.gpu.name}: a rank needs {format_size(told.total)} of {format_size(need.capacity)} ({how}); "
        f"{mend}--ignore-memory predicts it all the same"
    )


def _of_stage(setting: StepSetting, stage: int) -> StepMemory:
    lay, model = setting.layout, setting.model
    each = layers_of_chunks(model.layers, lay.pipeline * lay.chunks)
    own = setting.parts_of(stage, len(each))
    layers, ends = sum(each[i] for i in own), (0 in own) + (len(each) - 1 in own)
    share = layers / model.layers
    dense = (share * model.other_weights + ends * model.vocab * model.hidden) / lay.tensor
    experts = share * model.expert_weights / lay.expert
    both = setting.copies_of(stage)
    copies = 1 if setting.sharding == "none" else lay.shards * both
    of_experts = 1 if setting.sharding == "none" else lay.expert_shards * both
    owned, held = dense / copies + experts / of_experts, dense + experts
    kept, gathered = held, 0.0
    if setting.sharding == "full" and copies > 1:  # one layer is computed while the next one is gathered
        kept, gathered = owned, 2 * held / max(1, layers)
    trained = not setting.frozen
    return StepMemory(
        ACTIVATION * (kept + gathered), trained * ACTIVATION * kept, trained * ADAM * owned,
        _activations(setting, layers, stage), setting.gpu.capacity,
    )  # fmt: skip


def _activations(setting: StepSetting, layers: int, stage: int) -> float:
    """Bytes that a stage keeps of all micro-batches between their passes, and one layer's while it runs."""
    lay, model = setting.layout, setting.model
    tokens = setting.micro_batch * setting.sequence / lay.context / lay.tensor
    wide = (model.expert_ffn * model.top_k + model.shared_ffn) if model.experts else model.ffn
    heads = 2 * (model.heads + model.kv_heads) * model.head_dim  # queries, keys, values, and what attention returns
    all_of_it: float = 4 * model.hidden + heads + (3 if model.gated else 2) * wide
    if setting.attention == UNFUSED:  # softmax, what dropout leaves of it, and its mask, of each score
        all_of_it += 2.5 * model.heads * setting.sequence
    again = float(setting.recompute)
    each = (1 - again) * all_of_it + again * model.hidden
    return ACTIVATION * tokens * (layers * each * _under_way(setting, stage) + (all_of_it if again else 0))


def _under_way(setting: StepSetting, stage: int) -> float:
    """Micro-batches of which a stage keeps all of its parts' activations, at most."""
    lay, m, p = setting.layout, setting.micro_batches, setting.layout.pipeline
    if setting.order in (None, "1f1b", "interleaved"):
        held = float(min(m, p - stage))
        return min(m, held + (p - 1) / lay.chunks) if lay.chunks > 1 else held
    few = min(m, 2 * p)  # from where on as many are under way, or one more for each micro-batch
    one, two = (order_of(setting.schedule, p, n).peak_activations[stage] for n in (few, few + 2))
    return (one + (m - few) / 2 * (two - one)) / setting.copies_of(stage)
