"""The flow engine as DESIGN.md describes it, in plain Python: everything is solved again at every event.

Shares only the routes, the values and the meaning with commsim; data order, wires, sharing and time are its own.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from slow_sharing import Flow, max_min_rates

from commsim.core.network import SWITCH, Network
from commsim.core.schedule import REDUCE, Schedule
from commsim.routing.routing import find_routes

Phase = tuple[dict[Hashable, float], float]  # what is used with which share, and the bytes to move through it


@dataclass
class Message:
    """One transfer on its way; phases that move nothing, or use nothing, take no time."""

    number: int
    wire: tuple[int, ...]
    ready: float
    latency: float
    weight: float
    priority: int
    sending: list[Phase]
    receiving: list[Phase]
    after_done: set[int]
    after_sent: set[int]
    start: float | None = None
    sent: float | None = None
    arrives: float | None = None
    done: float | None = None
    now_receiving: bool = False
    todo: list[Phase] = field(default_factory=list)
    left: float = 0.0


def waits(schedule: Schedule) -> list[tuple[set[int], set[int]]]:
    """For every transfer, the earlier ones that must be complete, and those that must have been sent."""
    transfers = schedule.expand()
    reads, writes = (
        [{(t[end], a + k) for k in range(t["count"])} for t, a in zip(transfers, address, strict=True)]
        for end, address in (("src", schedule.src_address(transfers)), ("dst", schedule.dst_address(transfers)))
    )
    out = []
    for j, t in enumerate(transfers):
        done, sent = set(), set()
        for i in range(j):
            before = transfers[i]
            if before["hop"] < t["hop"] and writes[i] & (reads[j] | writes[j]):
                done.add(i)
            if before["hop"] < t["hop"] and reads[i] & writes[j]:
                sent.add(i)
            if before["stage"] < t["stage"] and {before["src"], before["dst"]} & {t["src"], t["dst"]}:
                done.add(i)
        out.append((done, sent))
    return out


def simulate(
    network: Network,
    jobs: Sequence[Any],
    sizes: Sequence[float],
    starts: Sequence[float],
    *,
    routing: str | None = None,
    seed: int = 0,
) -> list[tuple[float, float, float]]:
    """Play all jobs; return start, sent and done of every transfer, job by job in program order."""
    messages: list[Message] = []
    capacity: dict[Hashable, float] = {("link", k): float(b) for k, b in enumerate(network.bandwidth)}
    capacity |= {("unit", n): 1 / float(g) for n, g in enumerate(network.gamma) if g}
    first = 0
    for number, (job, size) in enumerate(zip(jobs, sizes, strict=True)):
        offset = len(messages)
        transfers = job.schedule.expand()
        for t, (done, sent) in zip(transfers, waits(job.schedule), strict=True):
            n_bytes = float(t["count"]) * size / job.schedule.n_chunks
            message = _message(network, capacity, len(messages), number, job, t, n_bytes, routing, seed)
            message.ready = max(0.0, starts[first + t["src"]], starts[first + t["dst"]])
            message.after_done = {offset + i for i in done}
            message.after_sent = {offset + i for i in sent}
            messages.append(message)
        first += job.schedule.n_participants
    _play(messages, capacity)
    return [(m.start, m.sent, m.done) for m in messages]  # type: ignore[misc]


def _message(
    network: Network,
    capacity: dict[Hashable, float],
    place: int,
    number: int,
    job: Any,
    t: Any,
    n_bytes: float,
    routing: str | None,
    seed: int,
) -> Message:
    src, dst = (int(job.placement.nodes[t[end]]) for end in ("src", "dst"))
    wire = (number, int(t["src"]), int(t["dst"]), int(t["channel"]))
    route = find_routes(network, [src], [dst], wire[3] + 1000 * number, routing=routing, seed=seed)
    path = {("link", int(k)): float(s) for k, s in zip(route.link, route.share, strict=True)}
    port = {r: s for r, s in path.items() if network.src[r[1]] == src}
    last = {r: s for r, s in path.items() if network.dst[r[1]] == dst}
    sending: list[Phase] = []
    receiving: list[Phase] = []
    if path:
        data: dict[Hashable, float] = dict(path)
        if job.rate_cap < float("inf"):
            capacity["cap", wire] = job.rate_cap
            data["cap", wire] = 1.0
        sending = [(dict(port), network.overhead[src] * _alone(port, capacity)), (data, n_bytes)]
        receiving = [(dict(last), network.recv_overhead[dst] * _alone(last, capacity))]
        for end, node, (uses, _) in ((0, src, sending[0]), (1, dst, receiving[0])):
            if network.kind[node] != SWITCH:  # a switch has an engine at each port
                # an overhead of o seconds is what the port would move in o seconds, were it alone; so does an engine
                capacity["engine", end, node] = float(network.message_engines[node])
                uses["engine", end, node] = 1 / _alone(uses, capacity)
    if t["op"] == REDUCE and network.gamma[dst]:
        receiving.append(({("unit", dst): 1.0}, n_bytes))
    latency = float(route.latency[0])
    return Message(place, wire, 0.0, latency, job.weight, job.priority, sending, receiving, set(), set())


def _alone(links: dict[Any, float], capacity: dict[Hashable, float]) -> float:
    return min(capacity[r] / share for r, share in links.items())


def _play(messages: list[Message], capacity: dict[Hashable, float]) -> None:
    now = 0.0
    while True:
        while any(_step(m, messages, now) for m in messages):
            pass
        moving = [m for m in messages if m.todo]
        rates = max_min_rates([Flow(m.todo[0][0], m.weight, m.priority) for m in moving], capacity)
        finish = [now + m.left / rate if rate > 0 else np.inf for m, rate in zip(moving, rates, strict=True)]
        later = [t for m in messages for t in (m.ready, m.arrives) if t is not None and t > now]
        if not (finish or later):
            break
        then = min(finish + later)
        for m, rate, at in zip(moving, rates, finish, strict=True):
            m.left = 0.0 if at <= then else max(m.left - rate * (then - now), 0.0)
            if m.left == 0.0:
                m.todo.pop(0)
                m.left = m.todo[0][1] if m.todo else 0.0
        now = then


def _step(m: Message, messages: list[Message], now: float) -> bool:
    """Do one thing that `m` can do at this time, if there is one."""
    while m.todo and (m.left == 0.0 or not m.todo[0][0]):
        m.todo.pop(0)
        m.left = m.todo[0][1] if m.todo else 0.0
    before = [k for k in messages[: m.number] if k.wire == m.wire]
    if m.start is None:
        free = all(messages[i].done is not None for i in m.after_done)
        free = free and all(messages[i].sent is not None for i in m.after_sent)
        if now < m.ready or not free or any(k.sent is None for k in before):
            return False
        m.start, m.todo = now, list(m.sending)
    elif m.sent is None and not m.todo:
        m.sent, m.arrives = now, now + m.latency
        return True
    elif m.sent is not None and not m.now_receiving and now >= m.arrives and all(k.done is not None for k in before):  # type: ignore[operator]
        m.now_receiving, m.todo = True, list(m.receiving)
    elif m.now_receiving and m.done is None and not m.todo:
        m.done = now
        return True
    else:
        return False
    m.left = m.todo[0][1] if m.todo else 0.0
    return True
