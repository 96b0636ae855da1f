"""Roofline of a transformer on one rank: matrix products, attention, element-wise work, and the optimizer.

Each matrix product of a layer takes what the curve of the accelerator says for its size and precision
(:meth:`commsim.training.gpus.Gpu.product_time`), attention its operations over the share of the peak that its kernels
reach, and element-wise work its bytes over the rate of memory that kernels reach. What a program loses beside this is
one factor: the step's calibration, or that of all programs (``calibration.py``).

References
----------
Shah et al., "FlashAttention-3", NeurIPS 2024 (scores are computed once more backward).
Korthikanti et al., "Reducing activation recomputation in large transformer models", MLSys 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.training.gpus import WIDE, Gpu

from .parallel_sizes import ParallelSizes
from .products import Product, products_of
from .transformer import ACTIVATION, ELEMENTWISE, Transformer

# Backward over forward: two products for each, and the scores once more.
BACKWARD, BACKWARD_ATTENTION, BACKWARD_FROZEN = 2.0, 2.5, 1.0
# Bytes by which a factor of a product below BF16 is cast: read as BF16, written once for each of two products.
CAST = 4
# Kernels of attention of Megatron and Transformer Engine; PyTorch's own are flash attention 2; programs before 2022
# multiplied, and wrote the scores to memory.
FUSED, FLASH, UNFUSED = "fused", "flash", "unfused"
# Bytes by which each score is written and read where it is in memory: forward by the first product, mask and softmax,
# dropout with its mask, and the second product; backward by the products and derivatives of all these.
SCORE_BYTES, SCORE_BYTES_BACKWARD = 13, 19
# Elements of a head with which the kernels of `reached` were measured, and operations per element of a head and score:
# two products forward, five backward.
HEAD, PER_SCORE, PER_SCORE_BACKWARD = 128, 4, 10
# Bytes per element of what experts return that their biases take, a third of those of both passes, since backward has
# element-wise work twice (Megatron-LM, moe/experts.py, _apply_bias): forward the bias times the token's probability in
# FP32 (4), the sum with the BF16 products (10), all experts in one tensor (8), and that in BF16 (6); backward the
# derivatives of these (36).
BIAS_BYTES = 64 / 3
# Bytes of a parameter's optimizer that are read and written: gradient, FP32 weight and two moments, and the weight.
OPTIMIZER_BYTES = 30
# Passes over all gradients of a rank beside the optimizer: clearing, and their norm.
GRADIENT_PASSES = 2


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Seconds of the mean layer for one micro-batch on one rank.

    Parameters
    ----------
    products : float
        Matrix products, forward; backward there are two for each.
    attention, attention_backward : float
        Attention itself.
    elementwise : float
        What only moves data, forward.
    """

    products: float
    attention: float
    attention_backward: float
    elementwise: float

    @property
    def forward(self) -> float:
        """All of it."""
        return self.products + self.attention + self.elementwise

    def backward(self, *, frozen: bool) -> float:
        """Seconds of the backward pass; without gradients of weights where these are frozen."""
        products = BACKWARD_FROZEN if frozen else BACKWARD
        return products * self.products + self.attention_backward + BACKWARD * self.elementwise


def layer_times(
    model: Transformer,
    gpu: Gpu,
    layout: ParallelSizes,
    micro_batch: int,
    sequence: int,
    precision: str,
    attention: str = FUSED,
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
    attention : {"fused", "flash", "unfused"}
        Kernels of attention: those of cuDNN and flash attention 3, flash attention 2, or products and a softmax.
    """
    tokens = micro_batch * sequence / layout.context
    products = sum(
        gpu.product_time(product.operations, product.n_bytes, precision)
        for product in products_of(model, layout, tokens)
    )
    each = tokens / layout.tensor  # heads are divided, and activations between products
    wide = (model.expert_ffn * model.top_k + model.shared_ffn) if model.experts else model.ffn
    moved = each * ACTIVATION * (ELEMENTWISE * model.hidden + 3 * wide)
    if precision not in WIDE:
        moved += each * CAST * (3 * model.hidden + wide)
    if model.expert_bias:
        moved += each * BIAS_BYTES * model.top_k * (model.expert_hidden or model.hidden)
    return LayerTimes(products, *_attention(model, gpu, each, sequence, attention), moved / gpu.memory_rate)


def _attention(model: Transformer, gpu: Gpu, tokens: float, sequence: int, kernels: str) -> tuple[float, float]:
    """Seconds of attention for so many tokens with all of their heads, forward and backward."""
    core = tokens * model.core(sequence) / gpu.peak("bf16")
    if kernels == UNFUSED:  # products know no mask, so they take the whole square
        product = 2 * core / gpu.reach("bf16")
        scores = tokens * sequence * model.heads * (model.attention_layers or model.layers) / model.layers
        moved = scores / gpu.memory_rate
        return product + SCORE_BYTES * moved, BACKWARD * product + SCORE_BYTES_BACKWARD * moved
    if kernels != FUSED:
        return core / gpu.reach("attention"), BACKWARD_ATTENTION * core / gpu.reach("attention_backward")
    forward, backward = (_of_head(gpu, model.head_dim, n) for n in (PER_SCORE, PER_SCORE_BACKWARD))
    return (
        forward * core / gpu.reach("attention_fused"),
        backward * BACKWARD_ATTENTION * core / gpu.reach("attention_fused_backward"),
    )


def _of_head(gpu: Gpu, head: int, per_score: int) -> float:
    """Time of an operation of fused attention with heads of a width, over that with heads of :data:`HEAD`.

    Each score takes `per_score` operations for each element of a head, and one exponential, whatever the width: heads
    of 64 reach 75 % of the rate of heads of 128 on an H100 (measured: 75 % forward, 84 % backward; here 75 and 86 %).
    """
    return (per_score + gpu.exponential / head) / (per_score + gpu.exponential / HEAD)


def head_time(model: Transformer, gpu: Gpu, layout: ParallelSizes, micro_batch: int, sequence: int) -> float:
    """Seconds of the projection to the vocabulary and of the loss for one micro-batch, forward, in BF16."""
    tokens = micro_batch * sequence / layout.context
    product = Product(tokens, model.hidden, model.vocab / layout.tensor)
    loss = 3 * tokens * model.vocab / layout.tensor * 4 / gpu.memory_rate
    return gpu.product_time(product.operations, product.n_bytes, "bf16") + loss


def optimizer_time(gpu: Gpu, owned: float, held: float) -> float:
    """Seconds of an update.

    Parameters
    ----------
    gpu : Gpu
        Where.
    owned, held : float
        Parameters whose optimizer the rank has, and whose gradients it has.
    """
    return (owned * OPTIMIZER_BYTES + held * GRADIENT_PASSES * ACTIVATION) / gpu.memory_rate
