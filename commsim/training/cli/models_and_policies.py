"""``commsim workload models`` and ``policies``: what a step and an iteration can be asked for by name."""

from __future__ import annotations

from typing import Any

from commsim.cli.flags import WithJson
from commsim.report.answer import Answer, Lines


def list_models(_: WithJson) -> Answer:
    """Return the transformers, and then the accelerators of a step."""
    from commsim.training.gpus import known_gpus
    from commsim.training.steps.transformer import known_transformers

    models: list[dict[str, Any]] = [
        {"model": one.name, "parameters": one.total, "layers": one.layers, "hidden": one.hidden, "source": one.source}
        for one in known_transformers().values()
    ]
    gpus = [{"gpu": one.name, "summary": one.summary, "memory_B": one.capacity, "peaks_per_s": dict(one.peaks)}
            for one in known_gpus().values()]  # fmt: skip
    lines = [f"{row['model']}: {row['parameters'] / 1e9:.4g} billion parameters" for row in models]
    lines += ["", "with --gpu:", *(f"{row['gpu']}: {row['summary']}" for row in gpus)]
    return Answer([Lines(lines)], [*models, *gpus], {"what": "models"})


def list_policies(_: WithJson) -> Answer:
    """Return the policies, with their parameters."""
    from commsim.training.policies import TRAINING_POLICIES

    rows = [{"policy": name, "parameters": [k for k in TRAINING_POLICIES[name].parameters if k != "setting"],
             "summary": TRAINING_POLICIES[name].summary} for name in TRAINING_POLICIES]  # fmt: skip
    lines: list[str] = []
    for row in rows:
        given = f":{','.join(row['parameters'])}" if row["parameters"] else ""
        lines += [f"{row['policy']}{given}", f"    {row['summary']}"]
    return Answer([Lines(lines)], rows, {"what": "policies"})
