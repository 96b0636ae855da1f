"""A real but small transformer, and the gradients that data-parallel ranks would have to add up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

VOCABULARY, WIDTH, HEADS, LAYERS, CONTEXT, BATCH = 256, 128, 4, 4, 64, 4


class SmallTransformer(nn.Module):  # type: ignore[misc]  # torch is not followed by the type checker
    """Predicts the next byte of a text; about 0.9 million parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, text: Any) -> Any:
        """Return the logits of what follows each byte of `text`, int64[batch, context]."""
        length = text.shape[1]
        hidden = self.token(text) + self.position(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return self.head(self.layers(hidden, mask=mask, is_causal=True))


def train(n_ranks: int, n_steps: int, seed: int = 0) -> tuple[list[float], NDArray[np.float32]]:
    """Train as `n_ranks` data-parallel ranks would, each on batches of its own.

    Parameters
    ----------
    n_ranks, n_steps : int
        Ranks, and optimiser steps.
    seed : int
        Of the initial weights and the batches.

    Returns
    -------
    losses : list of float
        Mean loss of all ranks before each step.
    gradients : float32[n_ranks, n_parameters]
        Of the last step, before they are averaged: what an all-reduce gets.
    """
    torch.manual_seed(seed)
    model = SmallTransformer()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    text, rng = _text(), np.random.default_rng(seed)
    losses = []
    for _ in range(n_steps):
        loss_and_gradient = [_gradient(model, _batch(text, rng)) for _ in range(n_ranks)]
        losses.append(float(np.mean([loss for loss, _ in loss_and_gradient])))
        gradients = torch.stack([gradient for _, gradient in loss_and_gradient])
        _set_gradient(model, gradients.mean(dim=0))
        optimiser.step()
    return losses, gradients.numpy()


def _text() -> NDArray[np.uint8]:
    """Return the source of our collectives: real text that is always there."""
    files = sorted((Path(__file__).parents[2] / "collectives").glob("*.py"))
    return np.frombuffer(b"".join(file.read_bytes() for file in files), np.uint8)


def _batch(text: NDArray[np.uint8], rng: np.random.Generator) -> Any:
    first = rng.integers(0, len(text) - CONTEXT - 1, BATCH)
    rows = text[first[:, np.newaxis] + np.arange(CONTEXT + 1)]
    return torch.from_numpy(rows.astype(np.int64))


def _gradient(model: nn.Module, batch: Any) -> tuple[float, Any]:
    model.zero_grad()
    logits = model(batch[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), batch[:, 1:].reshape(-1))
    loss.backward()
    return loss.item(), torch.cat([p.grad.reshape(-1) for p in model.parameters()])


def _set_gradient(model: nn.Module, flat: Any) -> None:
    done = 0
    for parameter in model.parameters():
        parameter.grad = flat[done : done + parameter.numel()].reshape(parameter.shape).clone()
        done += parameter.numel()
