"""Matrix products of the mean layer of a transformer on one rank."""

from __future__ import annotations

from dataclasses import dataclass

from .parallel_sizes import ParallelSizes
from .transformer import ACTIVATION, Transformer


@dataclass(frozen=True, slots=True)
class Product:
    """Products of a matrix of `rows` x `inner` with one of `inner` x `columns`; `times` of them are one kernel."""

    rows: float
    inner: float
    columns: float
    times: float = 1.0

    @property
    def operations(self) -> float:
        """Operations of all of them."""
        return 2 * self.times * self.rows * self.inner * self.columns

    @property
    def n_bytes(self) -> float:
        """Bytes of their matrices, BF16."""
        n = self.rows * self.inner + self.inner * self.columns + self.rows * self.columns
        return self.times * ACTIVATION * n


def products_of(model: Transformer, layout: ParallelSizes, tokens: float) -> list[Product]:
    """Return the products of the mean layer for so many tokens of a tensor parallel group, forward.

    Tensor parallelism divides columns of the first product of a pair and the inner dimension of the second. Experts of
    a rank each have a share of the tokens of their expert parallel group; their products are one kernel. A model of
    which only totals are known has its parameters as products of the width of the model.
    """
    t, hidden = layout.tensor, model.hidden
    products = []
    dense = model.dense_active
    if model.active_parameters:
        products.append(Product(tokens, hidden, dense / hidden / t))
    else:
        own = model.heads * model.head_dim / t
        if model.attention_parameters:
            products.append(Product(tokens, hidden, model.attention / hidden / t))
        else:
            kept = 2 * model.head_dim * max(1.0, model.kv_heads / t)  # a rank has a whole head of keys at least
            products += [Product(tokens, hidden, own + kept), Product(tokens, own, hidden)]
        share = (model.layers - model.n_expert_layers) / model.layers
        width = share * model.ffn + (1 - share) * model.shared_ffn
        if width:
            n = 2 if model.gated else 1
            products += [Product(tokens, hidden, n * width / t), Product(tokens, width / t, hidden)]
    if model.experts and layout.expert:
        share, width = model.n_expert_layers / model.layers, model.expert_hidden or hidden
        each = model.experts / layout.expert
        rows = tokens / t * model.top_k / each  # of all ranks of the group, those that visit one expert
        n = 2 if model.gated else 1
        products += [Product(rows, width, n * model.expert_ffn, share * each),
                  Product(rows, model.expert_ffn, width, share * each)]  # fmt: skip
    return products
