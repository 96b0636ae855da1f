"""A cost model as a pandas data frame: a row for each curve and size, with bus bandwidth."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd


def frame(model, sizes: Sequence[int] | None = None) -> pd.DataFrame:
    """Return times and rates at some sizes in bytes; at those of the file where none are given."""
    rows = []
    for operation, machines, gpus, faults in model.curves():
        curve = next(
            one for one in model.tree["curves"]
            if (one["operation"], one["machines"], one["gpus"], one["faults"]) == (operation, machines, gpus, faults)
        )  # fmt: skip
        for size in curve["size"] if sizes is None else sizes:
            time, low, high = model.answer(operation, machines, gpus, size, faults)
            rows.append({
                "operation": operation, "machines": machines, "gpus": gpus, "faults": faults, "size_B": size,
                "time_s": time, "low_s": low, "high_s": high, "busbw_Bps": size / time * curve["busbw_factor"],
                "choice": model.choice(operation, machines, gpus, size, faults),
            })  # fmt: skip
    return pd.DataFrame(rows).astype({"operation": "category", "faults": "category", "choice": "category"})
