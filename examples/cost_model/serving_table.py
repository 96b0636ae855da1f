"""The table of collectives that a serving simulator reads instead of its own measurements (columns as Vidur's).

python serving_table.py dgx.json all_reduce > all_reduce.csv
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence

from cost_model import CostModel  # commsim export evaluator python -o cost_model.py

NAMES = {"all_reduce": "all_reduce", "send_recv": "send_recv"}
STATS = ("min", "max", "mean", "median")


def rows(model: CostModel, operation: str, sizes: Sequence[int]) -> Iterator[dict[str, object]]:
    """Return a row for each size of each group without faults; times in milliseconds, sizes in bytes."""
    for name, machines, gpus, faults in model.curves():
        if name != operation or faults:
            continue
        for size in sizes:
            time, low, high = (1e3 * value for value in model.answer(name, machines, gpus, size))
            values = dict(zip(STATS, (low, high, time, time), strict=True), std=(high - low) / 2.56)  # of 80 %
            yield {f"time_stats.{NAMES[name]}.{key}": value for key, value in values.items()} | {
                "rank": 0, "num_workers": machines * gpus, "size": size, "collective": NAMES[name],
                "devices_per_node": gpus, "max_devices_per_node": gpus,
            }  # fmt: skip


def write(model: CostModel, operation: str, file) -> None:
    """Write the table for sizes up to 64 MiB: hidden sizes of up to 16,384 times 2,048 tokens in half precision."""
    sizes = [1024 * k for k in (*range(1, 64), *range(64, 1024, 16), *range(1024, 65536, 512))]
    found = list(rows(model, operation, sizes))
    writer = csv.DictWriter(file, found[0])
    writer.writeheader()
    writer.writerows(found)


if __name__ == "__main__":
    write(CostModel.read(sys.argv[1]), sys.argv[2], sys.stdout)
