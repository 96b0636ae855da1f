"""Kernels that simulate transfers in program order, each with its links to itself.

Program order is a topological order of what waits for what, so one pass finds every time: each chunk remembers when it
was last written and until when it was last read, each connection when it is free. All times are whole ticks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel
from commsim.engine.flow_job import FULL
from commsim.engine.flow_state import Rows

from .connection_costs import SLACK


@kernel
def simulate_in_order(
    moves: tuple[Rows, NDArray[np.int64], NDArray[np.float64]],
    connection: Rows,
    groups: tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int64]],
    rows: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]],
    clusters: tuple[Rows, NDArray[np.int32]],
    intervals: tuple[NDArray[np.int64], NDArray[np.int64]],
    fence: NDArray[np.int64],
    times: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
) -> tuple[int, int]:
    """Find all times, and whether no resource was ever asked for more than it has.

    Parameters
    ----------
    moves : (MOVE[n], int64[n_hops + 1], float64[n])
        Transfers in program order, where each hop begins, and the bytes of each transfer, headers included.
    connection : CONNECTION[n_connections]
        Modified in place.
    groups : (float64[n], int32[n], int64[n_groups, 2])
        Ticks per byte of each transfer, its group or -1, and (modified) start and end of each group; start is -1.
    rows : (int64[n_connections + 1], int32[m], float64[m])
        Resources of each connection, and the part of them that it asks for without others.
    clusters : (CLUSTER[n_resources], int32[m])
        Modified in place; the number of the cluster in which each row was counted last. No resources: none is shared.
    intervals : (int64[n_intervals], int64[n_intervals])
        Time at which each chunk interval was last written, and until which it was last read.
    fence : int64[3, n_participants]
        Number of the current stage, when the stages before it were complete, and when it is itself.
    times : (int64[n], int64[n], int64[n])
        Written: start, sent, done; or three arrays as long as the longest hop, which are used again for each.

    Returns
    -------
    last, shares : int
        When all were complete, and the first transfer that might have to share otherwise than assumed, or -1.
    """
    move, hop, n_bytes = moves
    pace, group, spans = groups
    cluster, seen = clusters
    written, read = intervals
    start, sent, done = times
    keeps = start.shape[0] >= move.shape[0]
    last = 0
    for h in range(hop.shape[0] - 1):
        base = 0 if keeps else hop[h]
        for i in range(hop[h], hop[h + 1]):
            t = move[i]
            w = t["connection"]
            begin = max(connection[w]["ready"], connection[w]["free"])
            for c in range(t["read"], t["read_end"]):
                begin = max(begin, written[c])
            for c in range(t["write"], t["write_end"]):
                begin = max(begin, max(written[c], read[c]))
            if fence.shape[1]:
                begin = max(begin, _stage(fence, connection[w]["src"], t["stage"]))
                begin = max(begin, _stage(fence, connection[w]["dst"], t["stage"]))
            gone = begin + connection[w]["overhead"] + np.int64(np.rint(n_bytes[i] * pace[i]))
            complete = max(gone + connection[w]["latency"], connection[w]["last"])
            if gone > begin:
                if group[i] >= 0 and not _in_step(spans, group[i], begin, gone):
                    return last, i
                if cluster.shape[0] and not _claim(
                    cluster, seen, rows, w, connection[w]["per_byte"] / pace[i], begin, gone
                ):
                    return last, i
            if t["reduces"] and connection[w]["gamma"] > 0.0:
                arrived = complete
                complete += np.int64(np.rint(n_bytes[i] * connection[w]["gamma"]))
                r = connection[w]["unit"]
                if r >= 0:
                    number = _join(cluster, r, 1.0, connection[w]["unit_seen"], arrived, complete)
                    if number < 0:
                        return last, i
                    connection[w]["unit_seen"] = number
            connection[w]["free"], connection[w]["last"] = gone, complete
            start[i - base], sent[i - base], done[i - base] = begin, gone, complete
            last = max(last, complete)
            if fence.shape[1]:
                fence[2, connection[w]["src"]] = max(fence[2, connection[w]["src"]], complete)
                fence[2, connection[w]["dst"]] = max(fence[2, connection[w]["dst"]], complete)
        for i in range(hop[h], hop[h + 1]):
            t = move[i]
            for c in range(t["read"], t["read_end"]):
                read[c] = max(read[c], sent[i - base])
            for c in range(t["write"], t["write_end"]):
                written[c] = max(written[c], done[i - base])
    return last, -1


@kernel
def _stage(fence: NDArray[np.int64], participant: int, stage: int) -> int:
    """When all stages of `participant` before this one were complete."""
    if fence[0, participant] != stage:
        fence[0, participant] = stage
        fence[1, participant] = fence[2, participant]
    before: int = fence[1, participant]
    return before


@kernel
def _in_step(spans: NDArray[np.int64], c: int, begin: int, end: int) -> bool:
    """Whether a message of group `c` is on its way exactly when the others are."""
    if spans[c, 0] < 0:
        spans[c, 0], spans[c, 1] = begin, end
    return bool(abs(spans[c, 0] - begin) <= SLACK and abs(spans[c, 1] - end) <= SLACK)


@kernel
def _claim(
    cluster: Rows,
    seen: NDArray[np.int32],
    rows: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]],
    w: int,
    factor: float,
    begin: int,
    end: int,
) -> bool:
    """Add an interval of connection `w` to all its resources; False if one might then be asked for too much."""
    first, resource, part = rows
    for e in range(first[w], first[w + 1]):
        seen[e] = _join(cluster, resource[e], part[e] * factor, seen[e], begin, end)
        if seen[e] < 0:
            return False
    return True


@kernel
def _join(cluster: Rows, r: int, part: float, seen: int, begin: int, end: int) -> int:
    """Add an interval to resource `r`; return the number of its cluster, or -1 if that might ask for too much.

    An interval that begins when all before have ended opens a new cluster. One that reaches back before the cluster is
    refused, since what it would overlap is forgotten. One connection's messages never overlap, so they count once: not
    again in the cluster `seen`.
    """
    if begin + SLACK >= cluster[r]["busy"]:
        cluster[r]["since"] = cluster[r]["busy"]
        cluster[r]["part"] = 0.0
        cluster[r]["number"] += 1
    elif begin + SLACK < cluster[r]["since"]:
        return -1
    if seen != cluster[r]["number"]:
        cluster[r]["part"] += part
    cluster[r]["busy"] = max(cluster[r]["busy"], end)
    return int(cluster[r]["number"]) if cluster[r]["part"] <= FULL else -1


@kernel
def longest_chain(move: Rows, hop: NDArray[np.int64], cost: NDArray[np.float64], n_connections: int) -> float:
    """Add up, over hops, the most that the messages of one connection take in it, one after the other.

    Parameters
    ----------
    move : MOVE[n], hop : int64[n_hops + 1]
        Transfers in program order, and where each hop begins.
    cost : float64[n], s
        Cost of each transfer.
    n_connections : int
        Wires.

    Returns
    -------
    float
        No chain of transfers that wait for each other can take longer, in seconds.
    """
    times = np.zeros(n_connections)
    total = 0.0
    for h in range(hop.shape[0] - 1):
        most = 0.0
        for i in range(hop[h], hop[h + 1]):
            times[move[i]["connection"]] += cost[i]
            most = max(most, times[move[i]["connection"]])
        for i in range(hop[h], hop[h + 1]):
            times[move[i]["connection"]] = 0.0
        total += most
    return total
