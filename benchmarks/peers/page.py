"""The comparison with peers as text: cells of a table, and the page docs/peers.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.processes import machine_kind
from benchmarks.scale_page import markdown
from commsim.files.whole_files import replacing

from .works import WORKS

COLUMNS = {
    "work": "work", "peer": "peer", "ours(s)": "cpu_s", "process(s)": "process_cpu_s", "theirs(s)": "peer_cpu_s",
    "their run(s)": "peer_run_cpu_s", "ratio": "ratio", "of processes": "process_ratio", "predicted(ms)": "time_s",
    "theirs(ms)": "peer_time_s", "differ by": "difference", "ours(MB)": "rss_MB", "theirs(MB)": "peer_rss_MB",
}  # fmt: skip
"""Headings, and the fields of a row."""


HEAD = """# Peers

Made by `python -m benchmarks.peers --write docs/peers.md`; nobody edits it. One core of: {machine}.

The same messages over the same routes, on commsim and on what can be installed from Debian or the package index;
medians of processor seconds over {times} runs of each program, which take turns.

- `ours`: building the network and the schedule, routing, planning and simulating, in a process whose kernels are
  loaded: what one more prediction costs, in a sweep or in a notebook. `process`: all of a fresh process, most of which
  is starting Python and loading compiled kernels from the disk.
- `theirs`: all of their process, a compiled program that reads the work from a file; `their run`: without reading it
  and building the network. `ratio` is theirs over ours; `of processes` is theirs over `process`.
- `differ by`: their predicted time over ours, less 1.

SimGrid {simgrid} is set to share links as commsim does: model CM02 without cross traffic, without a window, factors of
1, times kept to 1e-12 s. Where messages compete, links have no latency, since SimGrid would take latency as a weight.
Ordinary messages go through mailboxes; random ones are also sent directly, which is faster for them and far slower for
an all-to-all. They are few, since later on who waits for whom depends on the last bit of a rate.

ns-3 and ns.py work packet by packet and are compared with our packet engine: another level of detail, and no more than
8 hosts. ns-3 has TCP without losses or windows to stop it, ns.py no acknowledgements at all, and ours RoCE's packets of
4,096 bytes, of which every one is acknowledged; hence the differences of some percent.

The works:

{works}

"""


def cells(found: Mapping[str, Any]) -> list[str]:
    """Text under COLUMNS."""
    out = []
    for field in COLUMNS.values():
        value = found[field]
        if isinstance(value, str):
            out.append(value)
        elif field.endswith("time_s"):
            out.append(f"{value * 1e3:.6g}")
        else:
            out.append(f"{value:.1e}" if field == "difference" else f"{value:.3g}")
    return out


def write_page(path: str, found: Sequence[Mapping[str, Any]], times: int) -> None:
    """Write the page, whole or not at all."""
    simgrid = {row["version"] for row in found if row["peer"].startswith("SimGrid")}
    works = "\n".join(
        f"- `{name}`: {WORKS[name].what}; {WORKS[name].network}" for name in dict.fromkeys(r["work"] for r in found)
    )
    head = HEAD.format(machine=machine_kind(), times=times, simgrid=", ".join(simgrid), works=works)
    with replacing(path) as out:
        out.write(f"{head}{markdown(list(COLUMNS), [cells(row) for row in found])}\n".encode())
