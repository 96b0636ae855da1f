"""Two small models whose gradients are mostly zero, a recommender and a language model, and what ranks would add up.

The language model reads real text, the sources of Python's standard library. The recommender's clicks are drawn: items
by popularity, clicks by a quality of each that it can learn. No data set of clicks comes with an operating system.
"""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

Batch = tuple[Any, ...]
Rng = np.random.Generator


class SparseModel(Protocol):
    """What :func:`train` needs of a model, besides being a torch module."""

    def batch(self, rng: Rng) -> Batch:
        """Draw the batch of one rank."""

    def loss(self, *batch: Any) -> Any:
        """Return the loss of a batch."""


class Recommender(nn.Module):  # type: ignore[misc]  # torch is not followed by the type checker
    """Predicts clicks from embeddings of user, item, shop and category; about 1.4 million parameters, 0.4 % dense."""

    ROWS = (50_000, 25_000, 10_000, 1_000)
    WIDTH, HIDDEN, BATCH = 16, 64, 256

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, self.WIDTH, sparse=True) for rows in self.ROWS)
        self.layers = nn.Sequential(
            nn.Linear(len(self.ROWS) * self.WIDTH, self.HIDDEN), nn.ReLU(), nn.Linear(self.HIDDEN, 1)
        )
        self._quality = [np.random.default_rng([0, rows]).standard_normal(rows) for rows in self.ROWS]

    def batch(self, rng: Rng) -> Batch:
        """Draw users evenly, all else by popularity; clicks by the sum of their qualities, and chance."""
        columns = [rng.integers(self.ROWS[0], size=self.BATCH)]
        columns += [np.minimum(rng.zipf(1.2, self.BATCH) - 1, rows - 1) for rows in self.ROWS[1:]]
        liking = sum(quality[column] for quality, column in zip(self._quality, columns, strict=True))
        clicked = (liking + rng.standard_normal(self.BATCH) > 0).astype(np.float32)
        return torch.from_numpy(np.stack(columns)), torch.from_numpy(clicked)

    def loss(self, *batch: Any) -> Any:
        """Return the cross entropy of clicks."""
        columns, clicked = batch
        found = torch.cat([table(column) for table, column in zip(self.tables, columns, strict=True)], dim=1)
        return nn.functional.binary_cross_entropy_with_logits(self.layers(found)[:, 0], clicked)


class LanguageModel(nn.Module):  # type: ignore[misc]  # as above
    """Predicts the next word with an LSTM and a sampled softmax; about 1.3 million parameters, 3 % dense."""

    WORDS, WIDTH, BATCH, CONTEXT, SAMPLED = 10_000, 64, 8, 32, 256

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(self.WORDS, self.WIDTH, sparse=True)
        self.softmax = nn.Embedding(self.WORDS, self.WIDTH, sparse=True)
        self.lstm = nn.LSTM(self.WIDTH, self.WIDTH, batch_first=True)
        self._text = words_of_library(self.WORDS)

    def batch(self, rng: Rng) -> Batch:
        """Draw pieces of the text, and the wrong words to tell the right one from, by their rank as usual."""
        first = rng.integers(0, len(self._text) - self.CONTEXT - 1, self.BATCH)
        rows = self._text[first[:, np.newaxis] + np.arange(self.CONTEXT + 1)]
        wrong = np.exp(rng.random(self.SAMPLED) * np.log(self.WORDS)).astype(np.int64) - 1
        return torch.from_numpy(rows), torch.from_numpy(wrong)

    def loss(self, *batch: Any) -> Any:
        """Return the cross entropy of the next word among itself and the wrong words."""
        rows, wrong = batch
        hidden, _ = self.lstm(self.embedding(rows[:, :-1]))
        hidden, right = hidden.reshape(-1, self.WIDTH), rows[:, 1:].reshape(-1)
        score = (hidden * self.softmax(right)).sum(dim=1, keepdim=True)
        others = (hidden @ self.softmax(wrong).T).masked_fill(wrong == right[:, np.newaxis], -torch.inf)
        return nn.functional.cross_entropy(torch.cat((score, others), dim=1), torch.zeros_like(right))


def words_of_library(n_words: int) -> NDArray[np.int64]:
    """Return the standard library's text as ranks of words by frequency; the rarest share the last one."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    text = "".join(file.read_text(encoding="utf-8", errors="replace") for file in sorted(folder.glob("*.py")))
    words, code, count = np.unique(re.findall(r"\w+|[^\w\s]", text), return_inverse=True, return_counts=True)
    rank = np.empty(len(words), np.int64)
    rank[np.argsort(-count, kind="stable")] = np.arange(len(words))
    return np.minimum(rank[code], n_words - 1)


def train(kind: type[Any], n_ranks: int, n_steps: int, seed: int = 0) -> tuple[list[float], NDArray[np.float32]]:
    """Train as `n_ranks` data-parallel ranks would, each on batches of its own.

    Parameters
    ----------
    kind : type
        Recommender or LanguageModel.
    n_ranks, n_steps : int
        Ranks, and optimiser steps.
    seed : int
        Of the initial weights and the batches.

    Returns
    -------
    losses : list of float
        Mean loss of all ranks before each step.
    gradients : float32[n_ranks, n_parameters]
        Of the last step, before they are averaged: what an all-reduce gets. Parameters in the order in which the model
        names them, embeddings first.
    """
    torch.manual_seed(seed)
    model, rngs = kind(), [np.random.default_rng([rank, seed]) for rank in range(n_ranks)]
    optimiser = torch.optim.Adagrad(model.parameters(), lr=0.05)
    losses = []
    for _ in range(n_steps):
        found = [_gradient(model, model.batch(rng)) for rng in rngs]
        losses.append(float(np.mean([loss for loss, _ in found])))
        gradients = torch.stack([gradient for _, gradient in found])
        done = 0
        for parameter in model.parameters():
            part = gradients[:, done : done + parameter.numel()].mean(dim=0)
            parameter.grad = part.reshape(parameter.shape)
            done += parameter.numel()
        optimiser.step()
    return losses, gradients.numpy()


def _gradient(model: Any, batch: Batch) -> tuple[float, Any]:
    model.zero_grad(set_to_none=True)
    loss = model.loss(*batch)
    loss.backward()
    parts = [p.grad.to_dense() if p.grad.is_sparse else p.grad for p in model.parameters()]
    return loss.item(), torch.cat([part.reshape(-1) for part in parts])
