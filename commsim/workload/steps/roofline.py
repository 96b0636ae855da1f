"""Roofline of a transformer on one rank: matrix products, attention, element-wise work, and the optimizer.

A layer takes the operations of its matrix products over the share of the peak that large products reach, the operations
of its attention over that of attention kernels, and the bytes of element-wise work over the bandwidth of memory; what
kernels lose beside this is the calibration, one factor for all of it.

References
----------
Shah et al., "FlashAttention-3", NeurIPS 2024: 740 of 989 TFLOP/s forward, less backward, where scores are computed once
more. Korthikanti et al., "Reducing activation recomputation in large transformer models", MLSys 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.software.gpus import Gpu

from .parallel_sizes import Layout
from .transformer import ACTIVATION, ELEMENTWISE, Transformer

# Share of the BF16 peak that attention kernels reach, forward and backward together.
ATTENTION = 0.6
# Backward over forward: two products for each, and the scores once more.
BACKWARD, BACKWARD_ATTENTION, BACKWARD_FROZEN = 2.0, 2.5, 1.0
# Bytes of a parameter's optimizer that are read and written: gradient, FP32 weight and two moments, and the weight.
OPTIMIZER_BYTES = 30
# Passes over all gradients of a rank beside the optimizer: clearing, and their norm.
GRADIENT_PASSES = 2


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Seconds of the mean layer for one micro-batch on one rank, forward.

    Parameters
    ----------
    products : float
        Matrix products.
    attention : float
        Attention itself.
    elementwise : float
        What only moves data.
    """

    products: float
    attention: float
    elementwise: float

    @property
    def forward(self) -> float:
        """All of it."""
        return self.products + self.attention + self.elementwise

    def backward(self, *, frozen: bool) -> float:
        """Seconds of the backward pass; without gradients of weights where these are frozen."""
        products = BACKWARD_FROZEN if frozen else BACKWARD
        return products * self.products + BACKWARD_ATTENTION * self.attention + BACKWARD * self.elementwise


def layer_times(
    model: Transformer, gpu: Gpu, layout: Layout, micro_batch: int, sequence: int, precision: str
) -> LayerTimes:
    """Evaluate the roofline of the mean layer.

    Parameters
    ----------
    model, gpu, layout
        What is computed, where, and how it is divided.
    micro_batch, sequence : int
        Sequences of a micro-batch, and tokens of each.
    precision : str
        Precision of matrix products; attention is BF16.
    """
    tokens = micro_batch * sequence / layout.context / layout.tensor  # products are divided by tensor parallelism
    rate = gpu.peak(precision) * gpu.efficiency(precision)
    products = 2 * tokens * (model.dense_active + model.expert_active) / rate
    attention = tokens * model.core(sequence) / (ATTENTION * gpu.peak("bf16"))
    wide = (model.expert_ffn * model.top_k + model.shared_ffn) if model.experts else model.ffn
    moved = tokens * ACTIVATION * (ELEMENTWISE * model.hidden + 3 * wide)
    return LayerTimes(products, attention, moved / gpu.memory)


def head_time(model: Transformer, gpu: Gpu, layout: Layout, micro_batch: int, sequence: int) -> float:
    """Seconds of the projection to the vocabulary and of the loss for one micro-batch, forward, in BF16."""
    tokens = micro_batch * sequence / layout.context / layout.tensor
    products = 2 * tokens * model.hidden * model.vocab / (gpu.peak("bf16") * gpu.efficiency("bf16"))
    return products + 3 * tokens * model.vocab * 4 / gpu.memory


def optimizer_time(gpu: Gpu, owned: float, held: float) -> float:
    """Seconds of an update.

    Parameters
    ----------
    gpu : Gpu
        Where.
    owned, held : float
        Parameters whose optimizer the rank has, and whose gradients it has.
    """
    return (owned * OPTIMIZER_BYTES + held * GRADIENT_PASSES * ACTIVATION) / gpu.memory
