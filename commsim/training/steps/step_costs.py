"""Costs of a step: seconds of passes with what their traffic exposes, what is exchanged, and the pipeline's time."""

from __future__ import annotations

import functools
from dataclasses import replace

from commsim.core.remark import Remark
from commsim.training.cost_by_simulation import SEND
from commsim.training.parallel.pipeline import StageCosts, pipeline_graph
from commsim.training.parallel.pipeline_orders import order_of
from commsim.training.task_graph import TaskTimeline, simulate_graph

from .exchange_of_step import StepExchange, copies_of_token
from .launches import expert_launches
from .parallel_sizes import layers_of_chunks
from .roofline import head_time, layer_times, optimizer_time
from .step_graph import with_exchanges
from .step_setting import KINDS, StepSetting
from .step_traffic import StepTraffic
from .transformer import ACTIVATION

# Parts in which parameters of a model without a pipeline are gathered and reduced, one while another is computed.
BUCKETS = 8
# Share of an exchange of parameters, gradients or tokens behind computation that the step takes longer for all that:
# both want the same memory and processors. Fitted once, on MLPerf 3.1's GPT-3 on 4,096 H100 (eos-dfw_n512).
INTERFERENCE = 0.4


class StepCosts:
    """Seconds of passes and of data parallel exchanges, with some kinds of traffic left out; and the exchanges.

    Parameters
    ----------
    setting : StepSetting
        What is computed.
    traffic : StepTraffic
        Times of collectives on a network.
    """

    def __init__(self, setting: StepSetting, traffic: StepTraffic) -> None:
        self.setting, self.traffic = setting, traffic
        lay, model = setting.layout, setting.model
        self._chunks = lay.chunks if lay.pipeline > 1 else max(lay.chunks, min(BUCKETS, model.layers))
        self._layers = layers_of_chunks(model.layers, lay.pipeline * self._chunks)
        self._parts = [setting.parts_of(stage, len(self._layers)) for stage in range(lay.pipeline)]
        self._times = layer_times(
            model, setting.gpu, lay, setting.micro_batch, setting.sequence, setting.precision, setting.attention
        )
        self._tokens = setting.micro_batch * setting.sequence / lay.context  # of a tensor parallel group

    def has(self, kind: str) -> bool:
        """Whether the setting has traffic of a kind."""
        lay, copies = self.setting.layout, self.setting.copies_of(0)
        size = {"tensor": lay.tensor, "context": lay.context, "expert": lay.expert, "pipeline": lay.pipeline,
                "data": lay.context * lay.data * copies}  # fmt: skip
        return size[kind] > 1

    def notes(self) -> tuple[Remark, ...]:
        """Return what was assumed."""
        setting, lay = self.setting, self.setting.layout
        remarks = [Remark("compute", setting.gpu.source_line(setting.precision)), *setting.notes]
        if lay.chunks > 1 and setting.micro_batches % lay.pipeline:
            many = f"{setting.micro_batches} micro-batches are no multiple of {lay.pipeline} stages"
            remarks.append(Remark("interpolated", f"{many}: between those that are"))
        return (*remarks, *self.traffic.notes)

    def busiest(self) -> float:
        """Return the computation of the stage that computes most, with its optimizer."""
        lay, none = self.setting.layout, frozenset[str]()
        passes = [self._pass(i, none, backward=False) + self._pass(i, none, backward=True) for i in range(self.n_parts)]
        m = self.setting.micro_batches
        each = [sum(n / m * passes[i] for i, n in self.setting.passes_of(w, self.n_parts)) for w in range(lay.pipeline)]
        return m * max(each) + self._update()

    @property
    def n_parts(self) -> int:
        """Parts of the model, over all stages."""
        return len(self._layers)

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of traffic that the setting has."""
        return frozenset(kind for kind in KINDS if self.has(kind))

    def _pass(self, part: int, kinds: frozenset[str], *, backward: bool) -> float:
        """Seconds of one micro-batch in one part of the model, with what its own traffic exposes."""
        setting, times = self.setting, self._times
        layer = times.backward(frozen=setting.frozen) if backward else times.forward
        compute = layer * self._layers[part]
        if part == self.n_parts - 1:
            head = head_time(setting.model, setting.gpu, setting.layout, setting.micro_batch, setting.sequence)
            compute += head * (2 if backward else 1)
        if backward:
            compute += setting.recompute * times.forward * self._layers[part]
        exposed = self._layers[part] * sum(
            self._exposed(kind, backward) for kind in kinds & {"tensor", "context", "expert"}
        )
        launches = expert_launches(setting, backward=backward) * self._layers[part]
        seconds = compute * setting.factor + exposed + launches
        return self._sharded(part, seconds, backward=backward) if self._full and "data" in kinds else seconds

    @property
    def _full(self) -> bool:
        """Whether parameters are divided too, so that every pass gathers them."""
        return self.setting.sharding == "full" and self.has("data")

    def _sharded(self, part: int, seconds: float, *, backward: bool) -> float:
        """Seconds of a pass whose parameters are gathered, and whose gradients are reduced, layer by layer.

        One layer is gathered while the one before it is computed. So the first gathering of a stage's pass is exposed,
        and the last reduction, and of every layer what takes longer than its computation. What hides still costs the
        computation some of its memory and processors.
        """
        n, gathered = self._layers[part], self._of_one_layer("all_gather", part)
        reduced = self._of_one_layer("reduce_scatter", part) if backward and not self.setting.frozen else 0.0
        if "data" not in self.setting.overlap or not n:
            return seconds + max(n, 1) * (gathered + reduced)
        each = seconds / n
        hidden = min(each, gathered + reduced)
        ends = self._ends(part, backward) * gathered + (part < self.setting.layout.pipeline) * reduced
        return n * (max(each, gathered + reduced) + INTERFERENCE * hidden) + ends

    def _ends(self, part: int, backward: bool) -> bool:
        """Whether a part is the first of its stage's pass."""
        p = self.setting.layout.pipeline
        return part >= self.n_parts - p if backward else part < p

    def _of_one_layer(self, operation: str, part: int) -> float:
        """Seconds in which the parameters of a layer of a part are gathered, or its gradients reduced."""
        return sum(map(self.seconds, self._of_layers(operation, part)))

    def _of_layers(self, operation: str, part: int) -> list[StepExchange]:
        """Return what is exchanged of the layers of a part, one after the other."""
        n = max(self._layers[part], 1)
        return [replace(one, size=one.size / n, times=float(n)) for one in self._of_parameters(operation, part)]

    @functools.cache  # noqa: B019 - lives as long as one prediction
    def _exposed(self, kind: str, backward: bool) -> float:
        """Seconds that a kind of traffic adds to a pass of the mean layer."""
        setting, lay = self.setting, self.setting.layout
        each, (many, of) = self._of_layer(kind, backward)
        sent = sum(map(self.seconds, each)) * many / of
        if not setting.hides(kind):
            return sent
        times, f = self._times, setting.factor
        if kind == "tensor":
            piece = sent / lay.tensor
            return piece + max(0.0, sent - piece - f * times.products * (2 if backward and not setting.frozen else 1))
        if kind == "expert":  # behind the pass of another micro-batch, which it disturbs as sharding's does
            hidden = min(sent, f * (times.backward(frozen=setting.frozen) if backward else times.forward))
            return sent - hidden + INTERFERENCE * hidden
        return max(0.0, sent - f * (times.attention_backward if backward else times.attention))

    def seconds(self, exchange: StepExchange) -> float:
        """Return the time of an exchange, once."""
        is_sent = exchange.operation == SEND
        groups = self.setting.layout.sends() if is_sent else self.setting.groups(exchange.kind)
        return self.traffic.time(exchange.operation, groups, exchange.size)

    def _of_layer(self, kind: str, backward: bool) -> tuple[list[StepExchange], tuple[float, float]]:
        """Return what ranks exchange of one kind in a pass of a layer that has it, and how many layers of how many."""
        setting, lay, model = self.setting, self.setting.layout, self.setting.model
        if kind == "tensor":
            size = self._tokens * model.hidden * ACTIVATION
            blocks = 1 + (model.layers - model.n_expert_layers) / model.layers  # experts are no tensor parallel block
            names = ["all_gather", "reduce_scatter", *(["all_gather"] if backward and not setting.frozen else [])]
            return [StepExchange(name, kind, size) for name in names], (blocks, 1)
        if kind == "context":
            size = (
                self._tokens / lay.tensor * lay.context * model.kv_bytes * lay.tensor / min(lay.tensor, model.kv_heads)
            )
            return [StepExchange("all_gather", kind, size)] * (1 + backward), (1, 1)
        width = model.expert_hidden or model.hidden
        copies = copies_of_token(model.top_k, self.traffic.n_machines(lay.groups(kind)[0]), lay.expert)
        size = self._tokens / lay.tensor * copies * width * ACTIVATION
        return [StepExchange("all_to_all", kind, size)] * 2, (model.n_expert_layers, model.layers)

    def in_pass(self, part: int, *, backward: bool) -> list[StepExchange]:
        """Return what the ranks of a stage exchange in a pass of one micro-batch, without messages to other stages."""
        exchanges = []
        for kind in sorted(self.kinds & {"tensor", "context", "expert"}):
            each, (many, of) = self._of_layer(kind, backward)
            exchanges += [replace(exchange, times=self._layers[part] * many / of) for exchange in each]
        if self._full:
            exchanges += self._of_layers("all_gather", part)
            exchanges += self._of_layers("reduce_scatter", part) if backward and not self.setting.frozen else []
        return exchanges

    def exposed_in_pass(self, part: int, *, backward: bool) -> list[tuple[StepExchange, float]]:
        """Return what ranks exchange in a pass of one micro-batch, each with the seconds that nothing hides."""
        found = []
        for one in self.in_pass(part, backward=backward):
            many = 0 if one.kind.endswith("data") else len(self._of_layer(one.kind, backward)[0])
            found.append((one, self._layers[part] * self._exposed(one.kind, backward) / many if many else 0.0))
        is_sent = 0 <= part + (-1 if backward else 1) < self.n_parts
        if is_sent and "pipeline" in self.kinds - frozenset(self.setting.overlap):
            found.append((self.message, self.seconds(self.message)))
        return found

    def _weights(self, part: int) -> tuple[float, float]:
        """Parameters of a part on one rank: those of all, and of its experts."""
        model, lay = self.setting.model, self.setting.layout
        share = self._layers[part] / model.layers
        ends = (part == 0) + (part == self.n_parts - 1)
        dense = (share * model.other_weights + ends * model.vocab * model.hidden) / lay.tensor
        return dense, share * model.expert_weights / lay.expert

    def _of_stages(self) -> list[tuple[float, ...]]:
        """Parameters of all parts of each stage on one rank: those of all, and of its experts."""
        weights = [self._weights(i) for i in range(self.n_parts)]
        return [tuple(map(sum, zip(*(weights[i] for i in own), strict=True))) for own in self._parts]

    def _exchanged(self, operation: str, part: int) -> float:
        """Seconds in which the parameters of a part are gathered, or its gradients reduced and scattered."""
        return sum(map(self.seconds, self._of_parameters(operation, part)))

    def _of_parameters(self, operation: str, part: int) -> list[StepExchange]:
        each = ACTIVATION if operation == "all_gather" else self.setting.sent_gradient
        sizes = zip(("data", "expert_data"), self._weights(part), strict=True)
        return [StepExchange(operation, kind, weights * each) for kind, weights in sizes]

    def around(self, part: int, *, after: bool) -> list[StepExchange]:
        """Return what is exchanged of a part before its first pass, parameters, or after its last one, gradients."""
        setting = self.setting
        if "data" not in self.kinds or setting.frozen or self._full or (setting.sharding == "none" and not after):
            return []
        return self._of_parameters(self._reduction if after else "all_gather", part)

    @property
    def _reduction(self) -> str:
        return "all_reduce" if self.setting.sharding == "none" else "reduce_scatter"

    def of_replicas(self) -> list[StepExchange]:
        """Return what replicas exchange of the gradients of a rank's shards, after the last of them is there."""
        lay = self.setting.layout
        if lay.replicas == 1 or self.setting.frozen:
            return []
        stages = self._of_stages()
        most = max(range(len(stages)), key=lambda w: sum(stages[w]))
        dense, experts = (held * self.setting.sent_gradient for held in stages[most])
        n = self.setting.copies_of(most)
        sizes = (("replica", dense / (lay.shards * n)), ("expert_replica", experts / (lay.expert_shards * n)))
        return [StepExchange("all_reduce", kind, size) for kind, size in sizes if size]

    def _of_replicas(self, kinds: frozenset[str]) -> float:
        """Seconds that the sum of replicas adds: all, or with full sharding what the last backward pass leaves."""
        added = sum(map(self.seconds, self.of_replicas()))
        if not self._full or "data" not in self.setting.overlap:
            return added
        first = self._parts[0]
        backward = sum(self._pass(i, kinds, backward=True) for i in first)
        sent = sum(
            self._layers[i] * (self._of_one_layer("all_gather", i) + self._of_one_layer("reduce_scatter", i))
            for i in first
        )
        room = max(0.0, backward - sent)
        last = added / max(1, sum(self._layers[i] for i in first))
        return max(last, added - room) + INTERFERENCE * min(added, room)

    def sent(self) -> dict[str, float]:
        """Return seconds of a step's exchanges of each kind, exposed or not, of the stage with most of them."""
        lay, of_kind = self.setting.layout, dict.fromkeys(("expert_data", "replica", "expert_replica"), "data")
        most = dict.fromkeys(KINDS, 0.0)
        for stage in range(lay.pipeline):
            passes = self.setting.passes_of(stage, self.n_parts)
            parts, m = self._parts[stage], self.setting.micro_batches
            each = [(n, one) for i, n in passes for back in (False, True) for one in self.in_pass(i, backward=back)]
            messages = 2.0 * (sum(n for _, n in passes) / m)
            each += [(m, replace(self.message, times=messages))] if self.has("pipeline") else []
            once = [one for i in parts for after in (False, True) for one in self.around(i, after=after)]
            found = dict.fromkeys(KINDS, 0.0)
            for many, exchange in (*each, *((1, exchange) for exchange in (*once, *self.of_replicas()))):
                found[of_kind.get(exchange.kind, exchange.kind)] += many * exchange.times * self.seconds(exchange)
            most = {kind: max(most[kind], found[kind]) for kind in KINDS}
        return most

    def _update(self) -> float:
        """Seconds of the optimizer, of the stage with most parameters."""
        setting, lay = self.setting, self.setting.layout
        if setting.frozen:
            return 0.0
        seconds = []
        for stage, (dense, experts) in enumerate(self._of_stages()):
            shards = 1 if setting.sharding == "none" else lay.shards * setting.copies_of(stage)
            of_experts = max(1, shards * lay.tensor // lay.expert)
            seconds.append(optimizer_time(setting.gpu, dense / shards + experts / of_experts, dense + experts))
        return max(seconds)

    def step(self, kinds: frozenset[str]) -> float:
        """Seconds of a step with some kinds of traffic: simulated with few micro-batches, and periodic from there."""
        setting, p = self.setting, self.setting.layout.pipeline
        m = setting.micro_batches
        few = 3 * p
        if m <= 4 * p and (m % p == 0 or self._chunks == 1):
            return self._simulated(m, kinds)
        if m < p:  # the interleaved schedule needs a micro-batch for each stage
            return self._simulated(p, kinds) * (m * self._chunks + p - 1) / (p * self._chunks + p - 1)
        one, two = (self._simulated(n, kinds) for n in (few, few + p))
        if m < few:
            few = m // p * p
            one, two = (self._simulated(n, kinds) for n in (few, few + p))
        return one + (m - few) / p * (two - one)

    def _simulated(self, m: int, kinds: frozenset[str]) -> float:
        timeline, disturbed, added = self.timeline(m, kinds)
        return timeline.iteration_time + disturbed + added

    @property
    def message(self) -> StepExchange:
        """What each rank of a stage sends to one of the next stage after a pass."""
        size = self._tokens / self.setting.layout.tensor * self.setting.model.hidden * ACTIVATION
        return StepExchange(SEND, "pipeline", size)

    def timeline(self, m: int, kinds: frozenset[str]) -> tuple[TaskTimeline, float, float]:
        """Simulate a step of so many micro-batches.

        Returns
        -------
        timeline : TaskTimeline
            Passes of each stage (``gpu0``, ...), messages between stages, and exchanges around the passes.
        disturbed : float, s
            Time that computation takes longer beside exchanges of data parallelism.
        added : float, s
            Time in which replicas add up gradients after all that.
        """
        setting, lay = self.setting, self.setting.layout
        order = order_of(
            setting.order or ("interleaved" if self._chunks > 1 else "1f1b"), lay.pipeline, m, self._chunks
        )
        forward, backward = ([self._pass(i, kinds, backward=b) for i in range(self.n_parts)] for b in (False, True))
        send = self.seconds(self.message) if "pipeline" in kinds else 0.0
        if send and "pipeline" not in setting.overlap:
            forward, backward = [f + send for f in forward], [b + send for b in backward]
            send = 0.0
        graph = pipeline_graph(order, StageCosts(forward, backward, activation=float(send > 0)))
        data = "data" in kinds and not setting.frozen and not self._full
        gathers = data and setting.sharding != "none"
        gather = [self._exchanged("all_gather", i) if gathers else 0.0 for i in range(self.n_parts)]
        reduce = [self._exchanged(self._reduction, i) if data else 0.0 for i in range(self.n_parts)]
        whole = with_exchanges(graph, order, gather, reduce, self._update(), apart="data" not in setting.overlap)
        added = self._of_replicas(kinds) if "data" in kinds else 0.0
        return simulate_graph(whole, lambda _: send), self._disturbed(gather, reduce), added

    def _disturbed(self, gather: list[float], reduce: list[float]) -> float:
        """Seconds that computation takes longer beside exchanges of data parallelism."""
        if "data" not in self.setting.overlap:
            return 0.0
        return INTERFERENCE * max(sum(gather[i] for i in own) + sum(reduce[i] for i in own) for own in self._parts)
