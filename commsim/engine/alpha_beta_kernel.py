"""Kernel of the alpha-beta engine: the critical path when ports are the only thing that is shared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, njit_norefcount

from .flow_state import Rows
from .queue_kernel import pop_event, push_event


@njit_norefcount
def _free_engine(free: NDArray[np.float64], first: NDArray[np.int64], group: int) -> int:
    """Find the engine of a group that is free first."""
    best = first[group]
    for e in range(first[group] + 1, first[group + 1]):
        if free[e] < free[best]:
            best = e
    return int(best)


@kernel
def critical_path(
    transfer: Rows,
    waiting: NDArray[np.int32],
    connection: Rows,
    queue: NDArray[np.int32],
    successors: tuple[NDArray[np.int64], NDArray[np.int32]],
    ports: NDArray[np.int32],
    n_ports: int,
    engines: tuple[NDArray[np.int32], NDArray[np.int64]],
) -> int:
    """Simulate all transfers on LogGP's machine; fills ``start``, ``sent`` and ``done`` of `transfer`.

    The cost of each is in its row: by a line, or by measured curves.

    A port sends one message at a time, in the order in which messages become ready (ties: program order). It receives
    and reduces one at a time, in the order in which their first bytes arrive. Several ports may share message engines,
    which take overheads in turn. The network is never full: it holds a
    message whose receiver is busy, and the sender goes on with the next one.

    Parameters
    ----------
    transfer, connection : structured arrays
        Tables of flow_state; `transfer` is modified in place.
    waiting : int32[n_transfers]
        Predecessors of each that are not yet sent, or complete; modified in place.
    queue : int32[n_transfers]
        Transfers by connection, in program order.
    successors : (int64[n_transfers + 1], int32[m])
        Rows of 2 * successor + (1 when it waits for completion).
    ports : int32[n_connections, 3]
        Ports that send, receive and reduce the messages of each connection.
    n_ports : int
        How many ports there are.
    engines : (int32[n_connections, 2], int64[n_groups + 1])
        Group of engines that overheads to send and to receive occupy, -1 where the port alone says when; and the
        number of the first engine of each group.

    Returns
    -------
    int
        Completed transfers.
    """
    n, n_connections = transfer.shape[0], connection.shape[0]
    first, code = successors
    group, first_engine = engines
    engine_free = np.full(first_engine[-1], -np.inf)
    ready_at = np.zeros(n)
    position = np.empty(n_connections, np.int64)
    connection_free = np.empty(n_connections)
    port_free = np.full((n_ports, 3), -np.inf)  # sending, receiving, reducing
    time = np.empty(2 * n + n_connections + 1)
    what = np.empty(2 * n + n_connections + 1, np.int64)  # a ready transfer, or n + one that arrives
    n_waiting = n_done = 0
    for w in range(n_connections):
        position[w] = connection[w]["next"]
        connection_free[w] = connection[w]["ready"]
        if position[w] < connection[w]["end"] and waiting[queue[position[w]]] == 0:
            n_waiting = push_event(time, what, n_waiting, connection_free[w], queue[position[w]])
    while n_waiting:
        now, i = time[0], what[0]
        n_waiting = pop_event(time, what, n_waiting)
        arrives = i >= n
        i %= n
        w = transfer[i]["connection"]
        src, dst, adder = ports[w]
        overhead, busy, latency = transfer[i]["overhead"], transfer[i]["busy"], transfer[i]["latency"]
        receive, adding = transfer[i]["receive"], transfer[i]["adding"]
        is_local = busy == 0.0 and latency == 0.0
        if arrives:
            done = transfer[i]["sent"] + latency + receive
            if not is_local:
                if now < port_free[dst, 1]:
                    done = port_free[dst, 1] + (busy - overhead) + receive
                if receive > 0.0 and group[w, 1] >= 0:
                    e = _free_engine(engine_free, first_engine, group[w, 1])
                    done = max(done, engine_free[e] + receive)
                    engine_free[e] = done
                port_free[dst, 1] = done
            if adding >= 0.0:
                done = max(done, port_free[adder, 2]) + adding
                port_free[adder, 2] = done
            transfer[i]["done"] = done
            n_done += 1
        else:
            start = now
            if not is_local:
                start = max(now, port_free[src, 0])
                if overhead > 0.0 and group[w, 0] >= 0:
                    e = _free_engine(engine_free, first_engine, group[w, 0])
                    start = max(start, engine_free[e])
                    engine_free[e] = start + overhead
                port_free[src, 0] = start + busy
            done = start + busy  # of the sending
            transfer[i]["start"], transfer[i]["sent"] = start, done
            n_waiting = push_event(time, what, n_waiting, start + overhead + latency, n + i)
            connection_free[w] = done
            position[w] += 1
            if position[w] < connection[w]["end"]:
                j = queue[position[w]]
                if waiting[j] == 0:
                    n_waiting = push_event(time, what, n_waiting, max(ready_at[j], connection_free[w]), j)
        for k in range(first[i], first[i + 1]):
            if (code[k] % 2 == 1) != arrives:
                continue
            j = code[k] // 2
            ready_at[j] = max(ready_at[j], done)
            waiting[j] -= 1
            v = transfer[j]["connection"]
            if waiting[j] == 0 and queue[position[v]] == j:
                n_waiting = push_event(time, what, n_waiting, max(ready_at[j], connection_free[v]), j)
    return n_done
