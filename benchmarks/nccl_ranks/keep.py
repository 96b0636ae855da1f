"""Keep what was measured as one small file: ``python -m benchmarks.nccl_ranks.keep FOLDER...``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from benchmarks.nccl_ranks.what_nccl_said import calls, costs, patterns

KEPT = Path(__file__).parent / "nccl_2_28_9.json"


def steps_of(path: Path) -> list[dict[str, Any]]:
    """Read what rank 0 wrote."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def choices_of(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return machine, channels, costs and calls of each communicator; of calls only those where something changes."""
    kept = []
    for step in steps:
        if step["name"] != "choices":
            continue
        log = step["log"]
        changes: dict[str, list[Any]] = {}
        for (operation, size), (how, n_channels) in sorted(calls(log, step["ranks"]).items()):
            of_operation = changes.setdefault(operation, [])
            if not of_operation or of_operation[-1][1:] != [how, n_channels]:
                of_operation.append([size, how, n_channels])
        found = re.search(r"(\d+) coll channels", log)
        assert found is not None
        kept.append({
            "ranks": step["ranks"], "machine": step["machine"], "patterns": patterns(log), "channels": int(found[1]),
            "costs": costs(log), "calls": changes,
        })  # fmt: skip
    return kept


def times_of(name: str, steps: list[dict[str, Any]]) -> list[list[Any]]:
    """Return network, operation, how, whether it was forced, channels, bytes and seconds of each timed call."""
    rows = []
    for step in steps:
        said = calls(step["log"], step["ranks"])
        for operation, size, _, seconds in step["rows"]:
            how, n_channels = said.get((operation, size), ("p2p", 0))
            rows.append([name, operation, how, step["name"] == "forced", n_channels, size, round(seconds, 8)])
    return rows


def main(words: list[str]) -> int:
    """Write the file."""
    if not words:
        print("usage: python -m benchmarks.nccl_ranks.keep FOLDER...", file=sys.stderr)
        return 2
    paths = [path for word in words for path in sorted(Path(word).glob("*/steps.jsonl"))]
    choices = [one for path in paths if path.parent.name == "choices" for one in choices_of(steps_of(path))]
    times = [
        row for path in paths if path.parent.name != "choices" for row in times_of(path.parent.name, steps_of(path))
    ]
    lines = ",\n".join(json.dumps(row) for row in choices), ",\n".join(json.dumps(row) for row in times)
    head = '"nccl": "2.28.9", "gpu": "NVIDIA H100 80GB HBM3"'
    KEPT.write_text(f'{{{head}, "choices": [\n{lines[0]}\n], "times": [\n{lines[1]}\n]}}\n')
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
