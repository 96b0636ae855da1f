"""Transformers by name: shapes, parameters, operations and bytes of one layer (``transformers.toml``)."""

from __future__ import annotations

import functools
import importlib.resources
from dataclasses import dataclass

from commsim.core.errors import look_up

# Bytes of an activation and of a kept key or value, BF16.
ACTIVATION = 2
# Reads and writes of an activation of width `hidden` in a layer outside of matrix products: two norms, two residual
# additions, rotary embedding, the activation function; forward.
ELEMENTWISE = 16


@dataclass(frozen=True, slots=True)
class Transformer:
    """Shape of one model; widths are numbers of elements.

    Parameters
    ----------
    name, source : str
        Name on the command line, and where the shape is from.
    layers, hidden, heads, kv_heads, head_dim, ffn, vocab : int
        Usual dimensions.
    gated : bool
        Whether an MLP has three matrices, or two.
    experts, top_k, expert_ffn, shared_ffn, dense_layers : int
        Experts of a layer, those that a token visits, their width, the width of what every token passes, and layers
        without experts.
    expert_hidden : int
        Width of what is sent to experts, where it is not `hidden`.
    expert_bias : bool
        Whether experts add a bias.
    attention_layers, expert_layers : int
        Layers that attend, and layers with experts, where these are not all.
    attention_parameters : float
        Parameters of the attention of a layer, where they are not those of four projections.
    parameters, active_parameters : float
        All, and those that a token passes, where the layers do not say them.
    window : int
        Tokens to which every other layer attends; 0 for all.
    kv_bytes_per_token_and_layer : float
        Bytes kept of a token in one layer, where it is no pair of key and value per head.
    sequence : int
        Tokens of a sequence in its pre-training; 0 where they are not known.
    """

    name: str
    source: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    gated: bool = True
    experts: int = 0
    top_k: int = 0
    expert_ffn: int = 0
    shared_ffn: int = 0
    dense_layers: int = 0
    expert_hidden: int = 0
    expert_bias: bool = False
    attention_layers: int = 0
    expert_layers: int = 0
    attention_parameters: float = 0.0
    parameters: float = 0.0
    active_parameters: float = 0.0
    window: int = 0
    kv_bytes_per_token_and_layer: float = 0.0
    sequence: int = 0

    @property
    def attention(self) -> float:
        """Parameters of the attention of one layer."""
        if self.attention_parameters:
            return self.attention_parameters
        return float(self.hidden * self.head_dim * 2 * (self.heads + self.kv_heads))

    @property
    def n_expert_layers(self) -> int:
        """Layers with experts."""
        return (self.expert_layers or self.layers - self.dense_layers) if self.experts else 0

    @property
    def expert_weights(self) -> float:
        """Parameters of all routed experts of the model."""
        width = self.expert_hidden or self.hidden
        return float(self.n_expert_layers * self.experts * self._matrices * width * self.expert_ffn)

    @property
    def other_weights(self) -> float:
        """Parameters of all layers that are no routed experts."""
        if self.parameters:
            return max(self.parameters - self.expert_weights - 2 * self.vocab * self.hidden, 0.0)
        dense = (self.layers - self.n_expert_layers) * self._matrices * self.hidden * self.ffn
        shared = self.n_expert_layers * self.hidden * (self._matrices * self.shared_ffn + self.experts)
        return self.layers * self.attention + dense + shared

    @property
    def total(self) -> float:
        """All parameters, with an embedding and a head."""
        return self.parameters or self.expert_weights + self.other_weights + 2.0 * self.vocab * self.hidden

    @property
    def dense_active(self) -> float:
        """Parameters outside of routed experts that a token passes in the mean layer."""
        return self.other_weights / self.layers if not self.active_parameters else (
            (self.active_parameters - 2 * self.vocab * self.hidden) / self.layers - self.expert_active
        )  # fmt: skip

    @property
    def expert_active(self) -> float:
        """Parameters of routed experts that a token passes in the mean layer."""
        return self.expert_weights / self.layers * self.top_k / self.experts if self.experts else 0.0

    def core(self, sequence: int) -> float:
        """Operations of the attention for one token in the mean layer, forward: causal, so half of the square."""
        seen = sequence / 2
        if self.window and self.window < sequence:
            seen = (seen + self.window) / 2
        return 4.0 * seen * self.heads * self.head_dim * (self.attention_layers or self.layers) / self.layers

    @property
    def kv_bytes(self) -> float:
        """Bytes of keys and values of one token in one layer, BF16."""
        return self.kv_bytes_per_token_and_layer or 2.0 * self.kv_heads * self.head_dim * ACTIVATION

    def flops(self, sequence: int) -> float:
        """Operations of one token in a whole step, forward and backward, without anything computed twice."""
        layer = 2 * (self.dense_active + self.expert_active) + self.core(sequence)
        return 3 * (self.layers * layer + 2.0 * self.hidden * self.vocab)

    @property
    def _matrices(self) -> int:
        return 3 if self.gated else 2


@functools.cache
def known_transformers() -> dict[str, Transformer]:
    """Read all of them, by name."""
    import tomllib

    text = importlib.resources.files("commsim.training").joinpath("transformers.toml").read_text("utf-8")
    return {name: Transformer(name=name, **row) for name, row in tomllib.loads(text).items()}


def transformer(name: str) -> Transformer:
    """Return the model of that name.

    Raises
    ------
    InputError
        If the name is unknown.
    """
    return look_up("model", name, known_transformers(), "commsim workload models")
