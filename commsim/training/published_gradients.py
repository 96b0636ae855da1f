"""Published models as traces: what is known of their gradients, dense layers and embeddings."""

from __future__ import annotations

import functools
import importlib.resources
from typing import Any

import numpy as np

from commsim.core.errors import InputError, look_up
from commsim.core.units import parse_size, parse_time

from .backward_trace import FORWARD_SHARE, BackwardTrace, trace_from_gaps

PIECE = 25e6  # bytes: dense layers are not known one by one, and are cut so that exchanges can overlap with computation


@functools.cache
def published_models() -> dict[str, dict[str, Any]]:
    """Read all of them, by name."""
    import tomllib

    return tomllib.loads(
        importlib.resources.files("commsim.training").joinpath("published_gradients.toml").read_text("utf-8")
    )


def model_trace(name: str, batch_time: float | None = None) -> BackwardTrace:
    """Trace of a published model: dense layers by equal pieces, then the embedding.

    Parameters
    ----------
    name : str
        One of :func:`published_models`.
    batch_time : float, s, optional
        Forward and backward pass, where the model's own is not known; two thirds are the backward pass.

    Raises
    ------
    InputError
        If the model is unknown, or its compute time is.
    """
    row = look_up("model", name, published_models())
    if batch_time is None and "backward" not in row:
        raise InputError(f"{name}: how long it computes is not known here; give --batch-time TIME")
    backward = parse_time(row["backward"], name) if batch_time is None else batch_time / (1 + FORWARD_SHARE)
    sizes, densities, names = [], [], []
    if "dense" in row:
        size, density = parse_size(row["dense"][0], name), float(row["dense"][1])
        n = max(1, round(size / PIECE))
        sizes, densities, names = [size / n] * n, [density] * n, [f"dense {i}" for i in range(n)]
    if "embedding" in row:
        sizes.append(parse_size(row["embedding"][0], name))
        densities.append(float(row["embedding"][1]))
        names.append("embedding")
    # Looking rows up takes no time beside the layers.
    weights = np.array([0.0 if name == "embedding" and len(names) > 1 else 1.0 for name in names])
    gaps = backward * weights / weights.sum()
    return trace_from_gaps(np.array(sizes, np.float64), gaps, names=names).with_density(densities)


def source_text(name: str) -> str:
    """One line on where a model's numbers are from."""
    row = published_models()[name]
    return f"{name}: {row['source']}{' (recalled, not read there)' if row['recalled'] else ''}"
