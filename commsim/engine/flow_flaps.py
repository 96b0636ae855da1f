"""Flow engine with cables that go down and come up during the run.

Between two changes of links or routes, the event engine runs as ever. At a change, its tables of flows and resources
are laid out anew for the routes and capacities that hold from then on, and every message under way goes on with the
bytes that it has left. A link that is down carries nothing, so that messages over it wait until the switches route
around it, or it is up; then they go on at once, or with the sender's next repeat (:meth:`Flaps.resumes`). A sender that
repeats also waits when the link is on the way of its acknowledgements: it sends a window, which is not modelled, and
then nothing until its timer has expired.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, PhysicsError
from commsim.core.placement import joined
from commsim.core.result import Result
from commsim.routing.flaps import Flaps
from commsim.routing.pinned import find_routes_around
from commsim.routing.routing import Routes

from .flow_job import SLACK
from .flow_plan import FlowPlan
from .flow_state import DATA, IDLE, OVERHEAD, allocate_state, share_table
from .flow_tables import lay_out_connections, lay_out_flows
from .flow_times import FlowTimes
from .message_costs import refuse_curves
from .physics import check_order

# What a link that is down carries: so little that no message ends over it, and more than nothing, for the sharing.
STALLED = 1e-9  # bytes/s
MAX_CHANGES = 100_000

Floats = NDArray[np.float64]
__all__ = ["FlapRun", "simulate_flaps"]


@dataclass(frozen=True, slots=True, eq=False)
class FlapRun:
    """What happened.

    Parameters
    ----------
    times : FlowTimes
        Times of every transfer.
    carried : float64[n_jobs, n_links], bytes
        What each link carried, of each job.
    rerouted, stalled : int
        Connections whose route changed while they had messages to send, and that waited for a link that was down, on
        their way or on that of their acknowledgements.
    """

    times: FlowTimes
    carried: Floats
    rerouted: int
    stalled: int

    def of_job(self, job: int, result: Result) -> Result:
        """Return a job's result with what its links carried, and how many connections of all jobs the flaps met."""
        met = {"rerouted": float(self.rerouted), "stalled": float(self.stalled)}
        return dataclasses.replace(result, link_bytes=self.carried[job], counters={**result.counters, **met})


def simulate_flaps(plan: FlowPlan, on_wire: Floats, starts: Floats, flaps: Flaps) -> FlapRun:
    """Simulate a plan while links flap.

    Parameters
    ----------
    plan : FlowPlan
        Plan from :func:`commsim.engine.flow_plan.plan_flows`.
    on_wire : float64[n_transfers], bytes
        Bytes of each transfer on the wire, headers included.
    starts : float64[n_participants], s
        Time at which each participant enters.
    flaps : Flaps
        Links that go down, and when.

    Raises
    ------
    InputError
        If the network has measured curves, or a flap begins after the run.
    PhysicsError
        If a link carried more than it can, or nothing while it was down. This is a bug in commsim.
    """
    refuse_curves(plan.network, "flaps take messages that cost a line", "a network without curves")
    run = _FlapRun(plan, on_wire, starts, flaps)
    for _ in range(MAX_CHANGES):
        if not run.go_on():
            break
    else:
        raise InputError(f"more than {MAX_CHANGES} changes of links and routes in one run; use fewer flaps")
    return run.finished()


class _FlapRun:
    """State between two changes."""

    def __init__(self, plan: FlowPlan, on_wire: Floats, starts: Floats, flaps: Flaps) -> None:
        from .flow_kernel import prepare

        self.plan, self.on_wire, self.flaps = plan, on_wire, flaps
        self.several = len({job.priority for job in plan.jobs}) > 1
        self.placement = joined([job.placement for job in plan.jobs])
        self.nodes = self.placement.nodes[plan.ends]
        self.routes = plan.routes
        self.changes = flaps.changes()
        n = len(plan.connection)
        self.down = np.zeros(plan.network.n_links, np.bool_)
        self.avoided = np.zeros(plan.network.n_links, np.bool_)
        self.back = self._routes_back()
        self.blocked, self.blocked_at = np.zeros(n, np.bool_), np.zeros(n)  # over a link that is down, and since when
        self.resumes = np.full(n, np.inf)  # when a sender repeats what it lost
        self.was_stalled, self.was_rerouted = np.zeros((2, n), np.bool_)
        self.carried = np.zeros((len(plan.jobs), plan.network.n_links))
        self.moved = np.zeros(n)
        self.now = 0.0
        connection = plan.connection.copy()
        connection["ready"] = starts[plan.ends].max(axis=1, initial=0.0)
        self.ready = connection["ready"].copy()
        transfers = plan.connection_of, plan.op, on_wire, plan.waiting
        shared = connection, plan.flow, plan.flow_link, plan.resource
        self.state = allocate_state(transfers, shared, plan.queue, plan.successors)
        prepare(self.state)

    def go_on(self) -> bool:
        """Simulate up to the next change, and make it; return whether there was one."""
        from .flow_kernel import go_on_until

        t = self.state
        until = min(self.changes[0] if self.changes else np.inf, float(self.resumes.min(initial=np.inf)))
        go_on_until(t, self.several, until)
        end = min(until, float(t.done.max(initial=0.0))) if t.counter["n_done"] == len(t.done) else until
        self._account(end)
        if t.counter["n_done"] == len(t.done):
            self.flaps.require_begun(float(t.done.max(initial=0.0)))
            return False
        if until == np.inf:
            raise PhysicsError(f"deadlock: {len(t.done) - int(t.counter['n_done'])} transfers never completed")
        self.changes = [change for change in self.changes if change > until]
        self._change(until)
        return True

    def finished(self) -> FlapRun:
        """Check the run, and return it."""
        t = self.state
        times = FlowTimes(self.on_wire, t.start, t.sent, t.done, self.ready, int(t.counter["n_events"]))
        check_order(self.plan, times, SLACK * float(t.done.max(initial=0.0)))
        return FlapRun(times, self.carried, int(self.was_rerouted.sum()), int(self.was_stalled.sum()))

    def _left(self, now: float) -> Floats:
        """Bytes, or work of another phase, that each flow has left at time `now`."""
        flow = self.state.flow
        rate = np.where(flow["phase"] == IDLE, 0.0, flow["fair_rate"] * flow["weight"])
        left: Floats = np.maximum(flow["work"] - rate * (now - flow["since"]), 0.0)
        return left

    def _account(self, now: float) -> None:
        """Add what was moved since the last change to what links have carried, and check that they can."""
        t, n = self.state, len(self.moved)
        before = np.concatenate((np.zeros(1), np.cumsum(self.on_wire[t.queue])))
        moved = before[t.connection["next"]] - before[self.plan.connection["next"]]
        sending = np.flatnonzero(t.flow["phase"][:n] == DATA)
        moved[sending] += self.on_wire[t.flow["transfer"][sending]] - self._left(now)[sending]
        of_link = np.repeat(np.arange(n), np.diff(self.routes.first))
        more = (moved - self.moved)[of_link] * self.routes.share
        carried = np.zeros_like(self.carried)
        np.add.at(carried, (self.plan.job_of_connection[of_link], self.routes.link), more)
        could = self.plan.network.bandwidth * np.where(self.down, 0.0, now - self.now)
        # Bytes are differences of sums over the whole run, so that their rounding is that of these sums.
        slack = SLACK * (self.plan.network.bandwidth * now + before[-1])
        if (carried.sum(axis=0) > could + slack).any():
            worst = int((carried.sum(axis=0) - could - slack).argmax())
            name = self.plan.network.link_name(worst)
            raise PhysicsError(f"link {name} carried {carried.sum(axis=0)[worst]} B and could carry {could[worst]} B")
        self.carried += np.maximum(carried, 0.0)
        self.moved, self.now = moved, now

    def _change(self, now: float) -> None:
        """Take links, routes and senders as they are from `now` on."""
        flaps, network = self.flaps, self.plan.network
        self.down, avoided = flaps.down(network, now), flaps.avoided(network, now)
        if (avoided != self.avoided).any():
            self.avoided = avoided
            before, self.routes = self.routes, self._routes(self.plan.ends)
            self.back = self._routes_back()
            self.was_rerouted |= _differ(before, self.routes) & self._unfinished()
        self._lay_out(now, self._stalled(now))

    def _unfinished(self) -> NDArray[np.bool_]:
        connection = self.state.connection
        return np.asarray(connection["next"] < connection["end"])

    def _routes_back(self) -> Routes:
        """Find the ways of the acknowledgements, which matter to senders that have a timer."""
        return self._routes(self.plan.ends[:, ::-1]) if self.flaps.rto else self.routes

    def _routes(self, ends: NDArray[np.int32]) -> Routes:
        """Find routes that take links which are to be avoided only as a last resort."""
        plan = self.plan
        return find_routes_around(
            plan.network, self.placement, ends, plan.channel, self.avoided, routing=plan.routing, seed=plan.seed,
            hashed_channel=plan.hashed_channel,
        )  # fmt: skip

    def _stalled(self, now: float) -> NDArray[np.bool_]:
        """Which connections cannot send: a link there or back is down, or they have not repeated what was lost.

        One that begins during the flap loses its first packets when it begins.
        """
        n, t = len(self.blocked), self.state
        blocked = np.zeros(n, np.bool_)
        for routes in (self.routes, self.back):
            blocked[np.repeat(np.arange(n), np.diff(routes.first))[self.down[routes.link]]] = True
        sending = np.isin(t.flow["phase"][:n], (OVERHEAD, DATA))
        for w in np.flatnonzero(self.blocked & ~blocked & sending):
            lost_at = max(float(t.start[t.flow["transfer"][w]]), float(self.blocked_at[w]))
            self.resumes[w] = self.flaps.resumes(lost_at, now)
            self.was_stalled[w] = True
        self.blocked_at[blocked & ~self.blocked] = now
        self.blocked = blocked
        self.resumes[(self.resumes <= now) | blocked] = np.inf
        return np.asarray(blocked | np.isfinite(self.resumes))

    def _lay_out(self, now: float, stalled: NDArray[np.bool_]) -> None:
        """Replace the tables of flows and resources, and let all that is under way enter them again."""
        from .flow_kernel import allocate

        plan, old, n = self.plan, self.state, len(self.moved)
        left = self._left(now)
        flow, flow_link, capacity = lay_out_flows(
            plan.network, plan.jobs, self.routes, self.nodes, plan.job_of_connection, plan.flow["weight"][:n]
        )
        connection = lay_out_connections(
            plan.network, np.bincount(plan.connection_of, minlength=n), self.nodes, self.routes,
            (flow, flow_link, capacity),  # before any is held: an overhead takes what it does, however long one waits
        )  # fmt: skip
        # In place of its first link, a connection that cannot send has a resource that carries next to nothing.
        held = np.flatnonzero(stalled & (flow["data"][:n] < flow["end"][:n]))
        flow_link.resource[flow["data"][held]] = len(capacity)
        capacity = np.append(capacity, STALLED)
        for name in ("next", "receive", "arrived", "upcoming", "following", "ready"):
            connection[name] = old.connection[name]
        resource = share_table(capacity, np.bincount(flow_link.resource, minlength=len(capacity)))
        transfers = plan.connection_of, plan.op, self.on_wire, old.waiting
        new = allocate_state(transfers, (connection, flow, flow_link, resource), plan.queue, plan.successors)._replace(
            start=old.start, sent=old.sent, done=old.done, event_time=old.event_time, event_code=old.event_code
        )
        for name in ("n_waiting", "n_done", "n_events"):
            new.counter[name] = old.counter[name]
        new.flow["phase"], new.flow["transfer"], new.flow["work"] = old.flow["phase"], old.flow["transfer"], left
        going = np.flatnonzero(new.flow["phase"] != IDLE)
        new.beginning[: len(going)] = going
        new.counter["n_beginning"] = len(going)
        allocate(new, now, self.several)
        self.state = new


def _differ(routes: Routes, other: Routes) -> NDArray[np.bool_]:
    """Find the routes that are not the same links in the same order."""
    n = len(routes.first) - 1
    differ = np.diff(routes.first) != np.diff(other.first)
    for r in np.flatnonzero(~differ):
        a, b = (table.link[table.first[r] : table.first[r + 1]] for table in (routes, other))
        differ[r] = not np.array_equal(a, b)
    return np.asarray(differ[:n])
