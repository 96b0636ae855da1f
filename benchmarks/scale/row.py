"""One row of the benchmark of scale, in a process of its own: ``python -m benchmarks.scale.row SERIES RANKS``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.processes import peak_mb

# A short work is repeated for so many seconds, or so many times, and the mean kept: some clocks are coarse, and a short
# work often takes 0 s by them.
ENOUGH, TIMES = 0.5, 50

Seconds = tuple[float, float, float]


def measure(name: str, n: int) -> dict[str, Any]:
    """Measure one work: once small, so that the kernels are loaded, and then at its size."""
    begin = time.process_time()
    from .works import FULL_TRANSFERS, SERIES

    series = SERIES[name]
    for method in ("auto", "events"):
        work(name, series.few, method)
    loaded = time.process_time() - begin
    base = peak_mb()
    first, _, result = work(name, n)
    rss = peak_mb()
    network, prepare, predict = repeated(name, n) if sum(first) < ENOUGH else first
    cpu = network + prepare + predict
    row = {
        "cpu_s": cpu,
        "network_s": network,
        "prepare_s": prepare,
        "predict_s": predict,
        "import_s": loaded,
        "rss_MB": rss,
        "base_MB": base,
        "time_s": result.time,
        "method": result.method,
        "transfers": result.counters["transfers"],
        "transfers_per_s": result.counters["transfers"] / cpu,
    }
    if n <= series.full_ranks and result.counters["transfers"] <= FULL_TRANSFERS:
        row |= against_events(name, n, result.time)
    return row


def against_events(name: str, n: int, answer: float) -> dict[str, float]:
    """Measure the chosen way and the event engine in turn; building the network is left out of both.

    Returns
    -------
    dict
        Mean seconds of the event engine, the ratio of the means, and the relative difference of the answers.
    """
    mine_s, full_s, count, answers = 0.0, 0.0, 0, set()
    while (full_s < ENOUGH and count < TIMES) or not full_s:
        mine, (full, result) = (work(name, n, method)[0::2] for method in ("auto", "events"))
        mine_s, full_s, count = mine_s + sum(mine[0][1:]), full_s + sum(full[1:]), count + 1
        answers.add(result.time)
    return {
        "full_s": full_s / count,
        "ratio": mine_s / full_s,
        "full_difference": max(abs(found / answer - 1) for found in answers),
    }


def repeated(name: str, n: int) -> Seconds:
    """Do a short work again and again; return the means."""
    total, count = [0.0, 0.0, 0.0], 0
    while (sum(total) < ENOUGH and count < TIMES) or not sum(total):
        seconds, _, _ = work(name, n)
        total, count = [a + b for a, b in zip(total, seconds, strict=True)], count + 1
    return total[0] / count, total[1] / count, total[2] / count


def work(name: str, n: int, method: str = "auto") -> tuple[Seconds, Any, Any]:
    """Do a work; return seconds for the network, for preparing and for predicting, what was prepared and the result."""
    from commsim.prediction.build import prepare

    from .works import SERIES, SIZE

    series = SERIES[name]
    moments = [time.process_time()]
    network = series.build_network(n)
    moments.append(time.process_time())
    placement = "random" if series.scattered else "packed"
    ready = prepare(series.build_schedule(n), network, n_ranks=n, placement=placement, routing=series.routing)
    moments.append(time.process_time())
    result = ready.predict(SIZE, start_jitter=series.jitter, method=method)
    moments.append(time.process_time())
    return (moments[1] - moments[0], moments[2] - moments[1], moments[3] - moments[2]), ready, result


def main(argv: Sequence[str] | None = None) -> int:
    """Print the row as one line of JSON; an error that names what was wrong is a row, too."""
    from commsim.core.errors import CommsimError

    name, n = (sys.argv[1:] if argv is None else argv)[:2]
    try:
        print(json.dumps(measure(name, int(n))))
    except (CommsimError, MemoryError) as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
