"""Training iterations of published networks: layers through servers or buckets, experts, pieces for another mesh."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from commsim.core.errors import look_up

from .measures import GBPS, measure, seconds, simulated

# Of each layer from the front: weights, and multiplications for one image of 224 x 224.
Layers = list[tuple[float, float]]

BACKWARD = 2.0  # a backward pass computes gradients of weights and of inputs, each as much as the forward pass
FLOAT = 4.0
# Bytes of a layer's weights that all GPUs hold: attention of Lina's smallest model, 512 wide, 4 matrices.
SHARED_GRADIENTS = 4 * 512**2 * FLOAT
P3_SLICE, BYTESCHEDULER_PARTITION = 50e3, 1e6  # numbers: the defaults of both programs


def _vgg(stages: Sequence[int]) -> Layers:
    """VGG: 3 x 3 convolutions at 224, 112, ... pixels, and three dense layers (Simonyan and Zisserman, 2014)."""
    layers: Layers = []
    before = 3
    for stage, (convolutions, channels) in enumerate(zip(stages, (64, 128, 256, 512, 512), strict=True)):
        for _ in range(convolutions):
            weights = 9.0 * before * channels
            layers.append((weights + channels, weights * (224 / 2**stage) ** 2))
            before = channels
    return layers + [(a * b + b, a * b) for a, b in ((25088.0, 4096.0), (4096.0, 4096.0), (4096.0, 1000.0))]


def _resnet50() -> Layers:
    """ResNet50: four stages of bottlenecks at 56, 28, ... pixels (He et al., CVPR 2016)."""
    layers: Layers = [(9408.0, 9408.0 * 112**2)]
    before = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        narrow, area = 64 * 2**stage, (56 / 2**stage) ** 2
        for block in range(blocks):
            parts = [before * narrow, 9 * narrow**2, 4 * narrow**2] + [4 * narrow * before] * (block == 0)
            layers += [(float(part), part * area) for part in parts]
            before = 4 * narrow
    return [*layers, (2049000.0, 2048000.0)]


def _bert_large() -> Layers:
    """BERT-large: embeddings, 24 blocks 1024 wide, a pooler; the output takes the embeddings' matrix once more.

    Multiplications are those of a token with weights; attention's own and look-ups are left out (Devlin et al., 2018).
    """
    words, wide = 30522.0, 1024.0
    block = 12 * wide**2 + 13 * wide
    embeddings: Layers = [((words + 512 + 2) * wide, 0.0)]
    return embeddings + [(block, block)] * 24 + [(wide**2 + wide, words * wide)]


LAYERS = {
    "BERT-large": _bert_large(),
    "VGG16": _vgg((2, 2, 3, 3, 3)),
    "VGG19": _vgg((2, 2, 4, 4, 4)),
    "ResNet50": _resnet50(),
}


def server_iteration(
    layers: Layers, batch: float, bandwidth: float, partition: float, *, priority: bool, colocated: bool = False
) -> float:
    """Seconds of an iteration with as many servers as workers.

    A gradient is pushed when it is there, and pulled when it was pushed whole, so that a large tensor uses one
    direction of the port at a time; partitions use both. A layer's forward pass waits for its own weights only.

    Parameters
    ----------
    layers : list of (weights, multiplications)
        Layers from the front.
    batch : float, s
        Time of all computation.
    bandwidth : float, bytes/s
        Bandwidth of a worker's port, one way.
    partition : float
        Numbers of a message at most.
    priority : bool
        Whether layers at the front overtake.
    colocated : bool
        Whether servers share the ports of the workers: then a push, and likewise a pull, takes both directions.
    """
    from commsim.training.task_graph import Task, TaskGraph, simulate_graph

    work = np.array([multiplications for _, multiplications in layers])
    forward = batch * work / (work.sum() * (1 + BACKWARD))
    out, back = ("worker.port", "worker.port") if colocated else ("worker.out", "worker.in")
    tasks: list[Task] = []
    arrived: dict[int, list[int]] = {}
    done: tuple[int, ...] = ()
    for layer in range(len(layers))[::-1]:
        tasks.append(Task(f"backward {layer}", ("worker.compute",), BACKWARD * forward[layer], after=done))
        done = (len(tasks) - 1,)
        weights = layers[layer][0]
        n = max(1, math.ceil(weights / partition))
        seconds, rank = FLOAT * weights / n / bandwidth, layer if priority else 0
        for part in range(n):
            tasks.append(Task(f"push {layer}.{part}", (out,), seconds, priority=rank, after=done))
            pull = Task(f"pull {layer}.{part}", (back,), seconds, priority=rank, after=(len(tasks) - 1,))
            tasks.append(pull)
            arrived.setdefault(layer, []).append(len(tasks) - 1)
    for layer in range(len(layers)):
        tasks.append(Task(f"forward {layer}", ("worker.compute",), forward[layer], after=(*done, *arrived[layer])))
        done = (len(tasks) - 1,)
    return simulate_graph(TaskGraph(tuple(tasks)), lambda task: task.duration).iteration_time


@simulated
def server_images(
    model: str, gpus: int, alone: float, gbps: float, batch: float = 32, scheduled: bool = False, machine: int = 8
) -> float:
    """Images a second of GPUs that train with servers, without partitions or with ByteScheduler's.

    Parameters
    ----------
    alone : float
        Images a second of one GPU that exchanges nothing.
    gbps : float
        Rate that a machine's connection to the servers reaches.
    batch : float
        Images of a GPU in an iteration.
    machine : int
        GPUs of a machine, which are added up inside; with one machine nothing is sent.
    """
    layers = look_up("model", model, LAYERS)
    partition = BYTESCHEDULER_PARTITION if scheduled else math.inf
    bandwidth = gbps * GBPS if gpus > machine else math.inf
    return gpus * batch / server_iteration(layers, batch / alone, bandwidth, partition, priority=scheduled)


@simulated
def greatest_gain(model: str, colocated: bool = False) -> float:
    """How many times faster P3's slices are than whole layers, on the network on which this is most.

    Only the ratio of communication to computation counts, which is tried from a tenth to ten.
    """
    layers = look_up("model", model, LAYERS)
    size = FLOAT * sum(weights for weights, _ in layers)
    gains = []
    for ratio in np.geomspace(0.1, 10.0, 21):
        whole = server_iteration(layers, 1.0, size / ratio, math.inf, priority=False, colocated=colocated)
        gains.append(whole / server_iteration(layers, 1.0, size / ratio, P3_SLICE, priority=True, colocated=colocated))
    return max(gains)


@simulated
def overlapped(model: str, forward: float, backward: float, communication: float) -> float:
    """Time of an iteration of PyTorch's DDP, whose parts are given: shares of what they take one after the other.

    Parameters
    ----------
    forward, backward, communication : float
        Shares; the optimiser has what is left of 1.
        Buckets are of 25 MiB, the first of 1 MiB; layers take time in proportion to their multiplications.
    """
    from commsim.training.backward_trace import BackwardTrace
    from commsim.training.data_parallel import train
    from commsim.training.data_parallel_setting import TrainingSetting

    sizes, work = np.array(look_up("model", model, LAYERS)[::-1]).T  # from the back, as gradients come
    sizes, work = FLOAT * sizes, work / work.sum()
    update = (1 - forward - backward - communication) * sizes / sizes.sum()
    trace = BackwardTrace(sizes, backward * work.cumsum(), forward * work, update=update)
    per_byte = communication / sizes.sum()
    setting = TrainingSetting(trace, 32, lambda task: per_byte * task.size if task.operation else task.duration)
    return train("ddp", setting).iteration_time


@measure
def resharding_gain(receivers: int, chunks: int = 64) -> float:
    """How many times faster a chain of chunks to all receivers is than a message to each."""
    from commsim.training.parallel.resharding import resharding_time

    each, chain = (resharding_time(name, 1.0, 1.0, receivers, n_chunks=chunks) for name in ("send_recv", "broadcast"))
    return each / chain


@simulated
def expert_gain(
    layers: int, ranks: int, all_to_all: float, share: float, slowed: float = 1.83, gbps: float = 100.0
) -> float:
    """How many times faster a step of experts is with Lina's order than as it was measured without.

    Parameters
    ----------
    layers, ranks : int
        Number of layers of the model, each with experts; number of GPUs, one expert each.
    all_to_all : float, s
        Time of all-to-alls in a step without Lina, which is its `share`. Computation takes the rest, half of it
        experts.
    slowed : float
        How many times longer all-to-alls of the backward pass took, beside all-reduces.
    gbps : float
        Rate of a GPU.
    """
    from commsim.training.cost_by_formula import closed_form_costs
    from commsim.training.parallel.layer_parallel import SENDING_POLICIES, ExpertLayer, expert_graph
    from commsim.training.task_graph import simulate_graph

    step = all_to_all / share
    alone = all_to_all / (2 * layers * (1 + slowed))  # two of each layer in the forward pass, two in the backward pass
    half = (step - all_to_all) / layers / (1 + BACKWARD) / 2
    tokens = alone * gbps * GBPS * ranks / (ranks - 1)
    layer = ExpertLayer(half, half, tokens, SHARED_GRADIENTS, BACKWARD)
    graph = expert_graph(layer, layers, ranks, SENDING_POLICIES["lina"])
    return step / simulate_graph(graph, closed_form_costs(bandwidth=gbps * GBPS)).iteration_time


@measure
def inference_gain(experts: int, skew: float, all_to_all: float) -> float:
    """How many times faster inference is with Lina's plan of experts than with one on each GPU.

    Parameters
    ----------
    experts : int
        Number of experts of a layer, as many as GPUs.
    skew : float
        Tokens of the most popular expert over those of the least popular one.
    all_to_all : float
        Share of the time without a plan. Computation takes the rest, half of it experts; both wait for the busiest GPU.
    """
    from commsim.papers.systems.lina import plan, zipf

    popularity = zipf(experts, math.log(skew) / math.log(experts))
    busiest = float((popularity @ plan(popularity)).max() / popularity.max())
    waiting = all_to_all + (1 - all_to_all) / 2
    return 1 / (1 - waiting + waiting * busiest)


@simulated
def overlapped_gain(
    before: str, after: str, network: str, size: float, ranks: int, backward: float, software: str
) -> float:
    """How many times faster training is with another exchange, hidden as far as the backward pass lasts.

    Parameters
    ----------
    before, after : str
        Collectives.
    size : float, bytes
        Size of all gradients.
    backward : float, s
        Time of the backward pass; the forward pass takes half as long.
    """
    times = [seconds(collective, network, size, ranks, software) for collective in (before, after)]
    slow, fast = (backward / BACKWARD + max(backward, time) for time in times)
    return slow / fast
