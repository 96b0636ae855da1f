"""One step of training: a pipeline of stages whose passes take compute and exposed traffic, sharded data parallelism.

Passes of micro-batches are tasks of :func:`commsim.workload.parallel.pipeline.pipeline_graph`. Before the first pass
of a part of the model its parameters are gathered, after its last one its gradients are reduced and scattered, and the
optimizer comes last. Tensor parallel exchanges are cut into as many pieces as there are ranks, and hide behind their
matrix product but for one piece; context parallel ones hide behind attention; those of experts hide behind nothing,
unless the setting says so. What is exposed by a kind is what the step loses with it against the same step without it.

References
----------
Narayanan et al., SC 2021 (interleaved pipelines); Korthikanti et al., MLSys 2023 (sequence parallelism); Rajbhandari et
al., SC 2020 (sharded optimizer); Liu et al., "Ring attention", 2023 (context parallelism).
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

from commsim.workload.cost_of import SEND
from commsim.workload.parallel.pipeline import StageCosts, pipeline_graph
from commsim.workload.parallel.pipeline_orders import interleaved, one_forward_one_backward
from commsim.workload.task_graph import simulate_graph

from .parallel_sizes import layers_of_chunks
from .roofline import head_time, layer_times, optimizer_time
from .step_graph import with_exchanges
from .step_setting import KINDS, StepSetting
from .step_traffic import StepTraffic
from .transformer import ACTIVATION

# Parts in which parameters of a model without a pipeline are gathered and reduced, one while another is computed.
BUCKETS = 8
# Share of a step below which a bubble is the rounding of sums.
ROUNDING = 1e-9
# Share of a data parallel exchange behind computation that the step takes longer for all that: both want the same
# memory and processors. Fitted once for all models and GPUs, on MLPerf 3.1, GPT-3 on 4,096 H100 (eos-dfw_n512).
INTERFERENCE = 0.4


@dataclass(frozen=True, slots=True)
class Step:
    """One step as predicted.

    Parameters
    ----------
    setting : StepSetting
        What was asked.
    time, compute, bubble : float, s
        The step; computation of the busiest stage; time in which that stage waits for others without any traffic.
    exposed : dict of str to float, s
        What the step would be shorter without a kind of traffic.
    notes : tuple of str
        What was assumed.
    """

    setting: StepSetting
    time: float
    compute: float
    bubble: float
    exposed: dict[str, float]
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return the JSON row."""
        asked = self.setting
        tokens = asked.global_batch * asked.sequence
        flops = asked.model.flops(asked.sequence) * tokens / asked.layout.n_ranks / self.time
        return {
            "model": asked.model.name, "gpu": asked.gpu.name, "ranks": asked.layout.n_ranks,
            **dataclasses.asdict(asked.layout), "micro_batches": asked.micro_batches, "precision": asked.precision,
            "factor": asked.factor, "step_s": self.time, "compute_s": self.compute, "bubble_s": self.bubble,
            **{f"exposed_{kind}_s": self.exposed[kind] for kind in KINDS},
            "tokens_per_s_per_gpu": tokens / self.time / asked.layout.n_ranks,
            "model_tflops_per_gpu": flops * 1e-12, "mfu": flops / asked.gpu.peak(asked.precision),
        }  # fmt: skip


def predict_step(setting: StepSetting, traffic: StepTraffic, *, by_kind: bool = True) -> Step:
    """Predict a step, and what each kind of traffic exposes.

    Parameters
    ----------
    setting : StepSetting
        What is computed.
    traffic : StepTraffic
        Times of collectives on a network.
    by_kind : bool
        Whether the exposed time of each kind is found; it takes a run of the pipeline for each.

    Raises
    ------
    InputError
        If the network is too small, or the pipeline too large.
    """
    costs = _Costs(setting, traffic)
    kinds = [kind for kind in KINDS if costs.has(kind)]
    time = costs.step(frozenset(kinds))
    compute, exposed, alone = costs.busiest(), dict.fromkeys(KINDS, 0.0), time
    if by_kind:
        for kind in kinds:
            exposed[kind] = max(0.0, time - costs.step(frozenset(kinds) - {kind}))
        alone = costs.step(frozenset())
    bubble = alone - compute
    return Step(setting, time, compute, bubble if bubble > ROUNDING * time else 0.0, exposed, costs.notes())


def copies_of_token(top_k: int, n_machines: int) -> float:
    """Return the copies of a token for which an all-to-all has the bytes of one copy for each machine.

    Experts are drawn uniformly: of n machines (n-1)(1 - (1-1/n)^k) others get a copy, where k (n-1)/n messages to
    single ranks would leave. Inside of one machine all k are sent.
    """
    if n_machines < 2:
        return float(top_k)
    return n_machines * (1 - (1 - 1 / n_machines) ** top_k)


class _Costs:
    """Seconds of passes and of data parallel exchanges, with some kinds of traffic left out."""

    def __init__(self, setting: StepSetting, traffic: StepTraffic) -> None:
        self._asked, self._traffic = setting, traffic
        lay, model = setting.layout, setting.model
        self._chunks = lay.chunks if lay.pipeline > 1 else max(lay.chunks, min(BUCKETS, model.layers))
        self._layers = layers_of_chunks(model.layers, lay.pipeline * self._chunks)
        self._times = layer_times(model, setting.gpu, lay, setting.micro_batch, setting.sequence, setting.precision)
        self._tokens = setting.micro_batch * setting.sequence / lay.context  # of a tensor parallel group

    def has(self, kind: str) -> bool:
        """Whether the setting has traffic of a kind."""
        lay = self._asked.layout
        size = {"tensor": lay.tensor, "context": lay.context, "expert": lay.expert, "pipeline": lay.pipeline,
                "data": lay.context * lay.data}  # fmt: skip
        return size[kind] > 1

    def notes(self) -> tuple[str, ...]:
        """Return what was assumed."""
        asked, lay = self._asked, self._asked.layout
        said = [asked.gpu.told(asked.precision)]
        if lay.chunks > 1 and asked.micro_batches % lay.pipeline:
            said.append(
                f"{asked.micro_batches} micro-batches are no multiple of {lay.pipeline} stages: between those that are"
            )
        return (*said, *self._traffic.notes)

    def busiest(self) -> float:
        """Return the computation of the stage that computes most, with its optimizer."""
        lay, none = self._asked.layout, frozenset[str]()
        passes = [self._pass(i, none, backward=False) + self._pass(i, none, backward=True) for i in range(self._n)]
        each = [sum(passes[w :: lay.pipeline]) for w in range(lay.pipeline)]
        return self._asked.micro_batches * max(each) + self._update()

    @property
    def _n(self) -> int:
        return len(self._layers)

    def _pass(self, part: int, kinds: frozenset[str], *, backward: bool) -> float:
        """Seconds of one micro-batch in one part of the model, with what its own traffic exposes."""
        asked, times = self._asked, self._times
        layer = times.backward(frozen=asked.frozen) if backward else times.forward
        compute = layer * self._layers[part]
        if part == self._n - 1:
            head = head_time(asked.model, asked.gpu, asked.layout, asked.micro_batch, asked.sequence)
            compute += head * (2 if backward else 1)
        if backward and asked.recompute:
            compute += times.forward * self._layers[part]
        exposed = self._layers[part] * sum(
            self._exposed(kind, backward) for kind in kinds & {"tensor", "context", "expert"}
        )
        seconds = compute * asked.factor + exposed
        if asked.sharding == "full" and "data" in kinds:
            gathered = self._gather(part) * (1 + backward)
            seconds = max(seconds, gathered) if "data" in asked.overlap else seconds + gathered
        return seconds

    @functools.cache  # noqa: B019 - lives as long as one prediction
    def _exposed(self, kind: str, backward: bool) -> float:
        """Seconds that a kind of traffic adds to a pass of the mean layer."""
        asked, lay, model = self._asked, self._asked.layout, self._asked.model
        groups, hides = lay.groups(kind), kind in asked.overlap
        products = asked.factor * self._times.products * (2 if backward and not asked.frozen else 1)
        if kind == "tensor":
            size = self._tokens * model.hidden * ACTIVATION
            blocks = 1 + (model.layers - model.n_expert_layers) / model.layers  # experts are no tensor parallel block
            each = [self._traffic.time(name, groups, size) for name in ("all_gather", "reduce_scatter")]
            sent = blocks * (sum(each) + (each[0] if backward and not asked.frozen else 0.0))
            piece = sent / lay.tensor
            return piece + max(0.0, sent - piece - products) if hides else sent
        if kind == "context":
            size = (
                self._tokens / lay.tensor * lay.context * model.kv_bytes * lay.tensor / min(lay.tensor, model.kv_heads)
            )
            sent = self._traffic.time("all_gather", groups, size) * (2 if backward else 1)
            attention = asked.factor * self._times.attention * (2.5 if backward else 1)
            return max(0.0, sent - attention) if hides else sent
        width = model.expert_hidden or model.hidden
        copies = copies_of_token(model.top_k, self._traffic.n_machines(groups[0]))
        size = self._tokens / lay.tensor * copies * width * ACTIVATION
        sent = 2 * self._traffic.time("all_to_all", groups, size) * model.n_expert_layers / model.layers
        return max(0.0, sent - products) if hides else sent

    def _weights(self, part: int) -> tuple[float, float]:
        """Parameters of a part on one rank: those of all, and of its experts."""
        model, lay = self._asked.model, self._asked.layout
        share = self._layers[part] / model.layers
        ends = (part == 0) + (part == self._n - 1)
        dense = (share * model.other_weights + ends * model.vocab * model.hidden) / lay.tensor
        return dense, share * model.expert_weights / lay.expert

    def _gather(self, part: int) -> float:
        return self._exchanged("all_gather", part)

    def _exchanged(self, operation: str, part: int) -> float:
        """Seconds in which the parameters of a part are gathered, or its gradients reduced and scattered."""
        lay, (dense, experts) = self._asked.layout, self._weights(part)
        each = ACTIVATION if operation == "all_gather" else self._asked.gradient_bytes
        sent = self._traffic.time(operation, lay.groups("data"), dense * each)
        return sent + self._traffic.time(operation, lay.groups("expert_data"), experts * each)

    def _between_replicas(self) -> float:
        """Seconds in which replicas add up the gradients of a rank's shards, after the last of them is there."""
        lay, p = self._asked.layout, self._asked.layout.pipeline
        if lay.replicas == 1 or self._asked.frozen:
            return 0.0
        held = max(sum(sum(self._weights(i)) for i in range(w, self._n, p)) for w in range(p))
        size = held * self._asked.gradient_bytes / lay.shards
        return self._traffic.time("all_reduce", lay.groups("replica"), size)

    def _update(self) -> float:
        """Seconds of the optimizer, of the stage with most parameters."""
        asked, lay = self._asked, self._asked.layout
        if asked.frozen:
            return 0.0
        weights = [self._weights(i) for i in range(self._n)]
        found = 0.0
        for w in range(lay.pipeline):
            dense, experts = (sum(of) for of in zip(*weights[w :: lay.pipeline], strict=True))
            shards = 1 if asked.sharding == "none" else lay.shards
            owned = dense / shards + experts / max(1, shards * lay.tensor // lay.expert)
            found = max(found, optimizer_time(asked.gpu, owned, dense + experts))
        return found

    def step(self, kinds: frozenset[str]) -> float:
        """Seconds of a step with some kinds of traffic: simulated with few micro-batches, and periodic from there."""
        asked, p = self._asked, self._asked.layout.pipeline
        m = asked.micro_batches
        few = 3 * p
        if m <= 4 * p and (m % p == 0 or self._plain):
            return self._simulated(m, kinds)
        if m < p:  # the interleaved schedule needs a micro-batch for each stage
            return self._simulated(p, kinds) * (m * self._chunks + p - 1) / (p * self._chunks + p - 1)
        one, two = (self._simulated(n, kinds) for n in (few, few + p))
        if m < few:
            few = m // p * p
            one, two = (self._simulated(n, kinds) for n in (few, few + p))
        return one + (m - few) / p * (two - one)

    @property
    def _plain(self) -> bool:
        return self._chunks == 1

    def _simulated(self, m: int, kinds: frozenset[str]) -> float:
        asked, lay = self._asked, self._asked.layout
        order = (
            interleaved(lay.pipeline, m, self._chunks)
            if self._chunks > 1
            else one_forward_one_backward(lay.pipeline, m)
        )
        forward, backward = ([self._pass(i, kinds, backward=b) for i in range(self._n)] for b in (False, True))
        size = self._tokens / lay.tensor * asked.model.hidden * ACTIVATION
        send = self._traffic.time(SEND, lay.sends(), size) if "pipeline" in kinds else 0.0
        if send and "pipeline" not in asked.overlap:
            forward, backward = [f + send for f in forward], [b + send for b in backward]
            send = 0.0
        graph = pipeline_graph(order, StageCosts(forward, backward, activation=float(send > 0)))
        data = "data" in kinds and not asked.frozen
        gather = [self._gather(i) if data and asked.sharding != "none" else 0.0 for i in range(self._n)]
        scatter = ["all_reduce" if asked.sharding == "none" else "reduce_scatter"] * self._n
        reduce = [self._exchanged(name, i) if data else 0.0 for i, name in enumerate(scatter)]
        whole = with_exchanges(graph, order, gather, reduce, self._update(), apart="data" not in asked.overlap)
        return (
            simulate_graph(whole, lambda _: send).iteration_time
            + self._disturbed(gather, reduce)
            + data * self._between_replicas()
        )

    def _disturbed(self, gather: list[float], reduce: list[float]) -> float:
        """Seconds that computation takes longer beside exchanges of data parallelism."""
        if "data" not in self._asked.overlap:
            return 0.0
        p = self._asked.layout.pipeline
        return INTERFERENCE * max(sum(gather[w::p]) + sum(reduce[w::p]) for w in range(p))
