"""The table of predictions: nccl-tests' columns, and what the busiest link carried."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.operations import OPERATIONS
from commsim.report.table import print_table, progress

COLUMNS = [
    "size(B)", "count", "type", "redop", "root", "time(us)", "algbw(GB/s)", "busbw(GB/s)", "#wrong",
    "wire(B)", "max_link(B)", "max_link(GB/s)", "busiest_link",
]  # fmt: skip

METHODS = {
    "recurrence": "a recurrence, since messages are alone on their links or share them in step",
    "simultaneous": "one allocation of rates, since all messages start together",
    "symmetric": "one of each class of transfers that are alike",
    "streamed": "event by event, with state for connections and not for messages",
    "events": "event by event",
}
"""What the flow engine's ways of computing are."""


def predict_and_print(spec: str, ready: Any, sizes: list[int], options: dict[str, Any]) -> list[Any]:
    """Predict all sizes of one prepared collective, print them as nccl-tests does, and return the results."""
    promise = OPERATIONS.get(ready.schedule.operation)
    if promise is not None and promise.signals:
        print(f"# -b, -e, -f: no effect, a {ready.schedule.operation} carries no bytes")
        sizes = [0]
    if ready.data is not None and ready.data.size is not None and sizes != [ready.data.size]:
        print("# -b, -e, -f: no effect, the gradients have the size that they have")
        sizes = [ready.data.size]
    found = [ready.predict(size, **options) for size in progress(sizes, spec)]
    for note in ready.notes:
        print(f"# {note}")
    title = f"{spec} on {ready.network.name}, {ready.schedule.n_ranks} ranks, engine {options['engine']}"
    print_table(COLUMNS, [table_row(ready.network, ready.schedule, r) for r in found], title)
    rates = [r.busbw for r in found if r.time > 0 and promise is not None]  # 'custom' has no factor
    print(f"# Avg bus bandwidth    : {sum(rates) / max(1, len(rates)) / 1e9:.4g}")
    for method in sorted({r.method for r in found} & METHODS.keys()):
        print(f"# flow engine: {method} ({METHODS[method]})")
    for line in (*_remarks(found), *_sparse_remarks(found), *_in_network_remarks(ready, found, options["framing"])):
        print(f"# {line}")
    return found


def table_row(network: Any, schedule: Any, r: Any) -> list[str]:
    """Cells of one result, under COLUMNS."""
    operation = OPERATIONS.get(r.operation)
    busiest = int((r.link_bytes / network.bandwidth).argmax()) if r.link_bytes.any() else -1
    load = r.link_bytes[busiest] if busiest >= 0 else 0.0
    rate = load / r.time if r.time else 0.0
    return [
        f"{r.size:.0f}",
        f"{r.size / 4:.0f}",
        "float",
        "sum" if operation and operation.reduces else "none",
        str(schedule.root if operation and operation.has_root else -1),
        f"{r.time * 1e6:.2f}",
        f"{r.algbw / 1e9:.3f}",
        f"{r.busbw / 1e9:.3f}" if operation else "N/A",
        "N/A",
        f"{r.bytes_on_wire:.0f}",
        f"{load:.0f}",
        f"{rate / 1e9:.3f}",
        network.link_name(busiest) if busiest >= 0 else "-",
    ]


def _remarks(results: list[Any]) -> list[str]:
    hidden = [r for r in results if r.counters.get("link_bound_s", 0.0) > r.time]
    if not hidden:
        return []
    worst = max(hidden, key=lambda r: r.counters["link_bound_s"] / r.time)
    factor = worst.counters["link_bound_s"] / worst.time
    return [f"contention is not modelled: the busiest link alone needs {factor:.2f} times as long; use --engine flow"]


def _sparse_remarks(results: list[Any]) -> list[str]:
    """Say how sparse the data is, and how much denser the sum."""
    return [
        f"{r.size:.0f} B: density {r.counters['density']:.4g}, of the union {r.counters['union_density']:.4g}, "
        f"densification {r.counters['densification']:.4g}"
        for r in results
        if "union_density" in r.counters
    ]


def _in_network_remarks(ready: Any, results: list[Any], wire: Any) -> list[str]:
    """Say what the numbers of a collective that switches add up mean."""
    from collectives import COLLECTIVES

    name = ready.schedule.name
    wanted = COLLECTIVES[name].facts.get("helpers") if name in COLLECTIVES else None
    if wanted is None or not ready.schedule.n_helpers:
        return []
    lines = [f"{name}: {line}" for line in _above_line_rate(ready, results)]
    counted = wire is not None or any(r.engine == "packet" for r in results)
    if wanted.systems and not counted:
        lines.append(f"{name}: headers are not counted; with them {' or '.join(map(_packets, wanted.systems))}")
    return lines


def _above_line_rate(ready: Any, results: list[Any]) -> list[str]:
    """Say why busbw is larger than what the busiest link carries, where it is."""
    network = ready.network
    for r in results:
        rate = network.bandwidth[int((r.link_bytes / network.bandwidth).argmax())] if r.link_bytes.any() else np.inf
        if r.time > 0 and r.busbw > rate:
            return [
                f"busbw is above the {rate / 1e9:.4g} GB/s of the busiest link: its factor is that of point-to-point "
                "algorithms, and to a switch that adds each byte is sent only once"
            ]
    return []


def _packets(spec: str) -> str:
    from commsim.core.spec import read_arguments, split_spec
    from switch_model.systems import SYSTEMS

    name, raw = split_spec(spec)
    build = SYSTEMS[name].build
    framing = build(**read_arguments(build, raw)).framing
    return f"--payload {framing.payload:.0f}B --header {framing.header:.0f}B ({spec})"
