"""Packets of small invented runs, and a slow, obvious reading of what happened in them."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pytest

from switch_model.packets import packet_event as p

SWITCH = 1000
GAP = 1_000_000  # ps between workers
ROUND = 100 * GAP
CASES = [(p.SWITCHML_UDP, 1), (p.SWITCHML_RDMA, 1), (p.SWITCHML_RDMA, 4), (p.ATP, 1)]
every_protocol = pytest.mark.parametrize(("protocol", "per"), CASES)


def event(**fields: Any) -> Any:
    """Build one packet."""
    row = np.zeros(1, p.PACKET_EVENT)
    row["elements"], row["message_packets"] = 256, 1
    for name, value in fields.items():
        row[name] = value
    return row


def story(
    protocol: int, n_workers: int = 4, n_chunks: int = 12, n_slots: int = 4, per: int = 1, job: int = 3,
    late: Mapping[int, int] | None = None, repeated: Collection[tuple[int, int]] = (),
    too_early: Collection[int] = (), again: Collection[tuple[int, int]] = (),
) -> Any:  # fmt: skip
    """Play a run: chunk after chunk, the workers contribute, one `GAP` after the other, then all get the result.

    Worker `late[message]` comes last, 5 more gaps later. `repeated` are (chunk, worker) that contribute twice, `again`
    those that get a result twice; results of the chunks `too_early` leave before the last worker has contributed.
    """
    rows, late = [], late or {}
    for chunk in range(n_chunks):
        begin = chunk // per * ROUND + chunk % per
        place = chunk % (2 * n_slots)
        same = {"protocol": protocol, "job": job, "chunk": chunk, "slot": place % n_slots, "version": place // n_slots,
                "position": chunk % per, "message_packets": per, "n_workers": n_workers,
                "elements": 62 if protocol == p.ATP else 256}  # fmt: skip
        if protocol == p.ATP:
            same["version"] = 0
        end = begin + 20 * GAP
        for worker in range(n_workers):
            ends = {"src": p.node_address(worker), "dst": p.node_address(SWITCH), "worker": worker}
            time = begin + (n_workers + 5 if late.get(chunk // per) == worker else worker) * GAP
            rows.append(event(kind=p.CONTRIBUTION, time_ps=time, **same, **ends))
            if (chunk, worker) in repeated:
                rows.append(event(kind=p.CONTRIBUTION, time_ps=end - GAP, flags=p.RESENT, **same, **ends))
            ends = {"src": p.node_address(SWITCH), "dst": p.node_address(worker), "worker": worker}
            if protocol == p.ATP:
                ends["workers"] = (1 << n_workers) - 1
            time = begin if chunk in too_early else end
            rows.append(event(kind=p.RESULT, time_ps=time + worker, **same, **ends))
            if (chunk, worker) in again:
                rows.append(event(kind=p.RESULT, time_ps=time + 5 * GAP, **same, **ends))
    events = np.concatenate(rows)
    return events[np.argsort(events["time_ps"], kind="stable")]


def slow_counts(events: Any) -> dict[str, int]:
    """Read SwitchML packets of one job at one switch, one by one."""
    last: dict[Any, Any] = {}
    seen: defaultdict[Any, int] = defaultdict(int)
    contributed: defaultdict[Any, dict[int, int]] = defaultdict(dict)
    results: list[tuple[Any, int, int]] = []
    repeats = 0
    for e in events:
        what = (int(e["slot"]), int(e["version"]), int(e["chunk"]))
        if e["kind"] == p.CONTRIBUTION:
            worker = int(e["src"])
            repeat = last.get((worker, what[0])) == what
            last[worker, what[0]] = what
            seen[worker, what] += not repeat
            repeats += repeat
            contributed[what, seen[worker, what] - 1].setdefault(worker, int(e["time_ps"]))
        else:
            worker = int(e["dst"])
            results.append(((what, max(seen[worker, what] - 1, 0)), worker, int(e["time_ps"])))
    n_workers = len({worker for who in contributed.values() for worker in who})
    wrong = sum(
        len(contributed[r]) < max(n_workers, 1) or time < max(contributed[r].values()) for r, _, time in results
    )
    return {
        "n_workers": max(n_workers, 1),
        "chunks": len({*contributed, *(r for r, _, _ in results)} - {r for r, who in contributed.items() if not who
                      and r not in {q for q, _, _ in results}}),
        "chunks_completed": len({r for r, _, _ in results}),
        "retransmissions": repeats,
        "duplicate_results": len(results) - len({(r, worker) for r, worker, _ in results}),
        "wrong_results": wrong,
    }  # fmt: skip
