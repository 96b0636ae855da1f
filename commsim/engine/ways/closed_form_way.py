"""The flow engine for a job whose time on a reference network is known: NCCL's calls, which have a closed form."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.job_connections import JobConnections
from commsim.engine.trace_files import TraceFile
from commsim.engine.ways.closed_form_proof import ClosedForm, Proof, applies, prove, simulate_known, simulate_loops
from commsim.routing.flaps import Flaps
from commsim.routing.routing import may_collide

from .catalog import CLOSED_FORM, LOOPS
from .proof_cache import TIMES, digest_of, digest_of_routes

# Transfers of some loops of a job up to which what they wait for is kept for other draws of routes, 0.2 GB.
MAX_SHARED = 2**21

__all__ = ["ClosedFormPaths"]


@dataclass(eq=False)
class ClosedFormPaths(FlowPaths):
    """A job with a known time, which stands where no link can be in the way; elsewhere its messages are simulated.

    Parameters
    ----------
    known : ClosedForm
        Time of the job on a reference network, for one size.
    """

    known: ClosedForm = dataclasses.field(kw_only=True)

    def simulate(
        self,
        size: float,
        *,
        starts: ArrayLike = 0.0,
        framing: Framing | None = None,
        trace: bool | TraceFile = False,
        method: str = "auto",
        flaps: Flaps | None = None,
    ) -> Result:
        """Return the known time where it is proved, else simulate; the parameters are those of any job."""
        plain = flaps is None and not trace
        if method in ("auto", CLOSED_FORM.name) and plain:
            result = self._known(size, starts, framing)
            if result is not None:
                return result
        if method == CLOSED_FORM.name:
            raise self._refusal(method)
        if method in ("auto", LOOPS.name) and plain and self.known.loops is not None:
            return self.with_rest(self._looped(self.network, size, starts, framing), size)
        result = super().simulate(size, starts=starts, framing=framing, trace=trace, method=method, flaps=flaps)
        return self.with_rest(result, size)

    @property
    def traced_alike(self) -> bool:
        """Whether the way that computes the time has the times of all transfers too: a known time has none."""
        return False

    @property
    def proof(self) -> Proof:
        """Whether a link may be in the way."""
        if "proof" not in self._plans:
            self._plans["proof"] = prove(
                self.network, self.job, self.known, self.routing, self.seed, self._plans.get("carriers")
            )
        proof: Proof = self._plans["proof"]
        return proof

    def on_reference(self, size: float) -> float:
        """Simulate the job on the reference network, and return what its messages take; known where routes are alike.

        Hashes choose among links that are endless there, so that most draws have one time.
        """
        reference, framing = self.known.reference, self.known.framing

        def simulate() -> float:
            return self._on(reference, self.job).simulate(size, framing=framing).time

        if not may_collide(self.network, self.routing):
            return simulate()
        key = digest_of_routes(self.proof.routes.each(), reference), size, framing
        times = self._plans.setdefault("reference", {})
        if key not in times:
            times[key] = simulate()
        time: float = times[key]
        return time

    def hashed_by(self, seed: int | None) -> FlowPaths:
        """Return the same with routes that another seed draws; what the schedules alone decide is found once for all.

        Parameters
        ----------
        seed : int, optional
            Seed of the hash of routes. Default: the same.
        """
        is_new = seed is not None and seed != self.seed and seed not in self._hashed
        paths = super().hashed_by(seed)
        if is_new and seed is not None:
            for key, plan in [*self._plans.items()]:
                if isinstance(plan, JobConnections):
                    paths._plans[key] = plan.hashed_by(seed)
                elif isinstance(plan, FlowJob):
                    paths._plans[key] = plan
            paths._plans["reference"] = self._plans.setdefault("reference", {})
            if "proof" in self._plans:
                paths._plans["carriers"] = self.proof.carriers
        return paths

    def _on(self, network: Network, job: FlowJob, decides: Hashable = "whole") -> FlowPaths:
        """Return a job on one of the two networks; what its schedule alone decides is found once for both.

        Parameters
        ----------
        network : Network
            Network.
        job : FlowJob
            Job: this one, or one of fewer loops.
        decides : hashable
            What decides the schedule among those of this job: the key of its loops.
        """
        paths = FlowPaths(network, job, self.routing, self.seed)
        if job is self.job and "ring_phases" in vars(self):
            vars(paths)["ring_phases"] = self.ring_phases
        key = "connections", decides
        if key not in self._plans:
            few = job.schedule.n_transfers <= MAX_SHARED
            made = JobConnections(network, job, self.routing, self.seed) if few else None
            self._plans[key] = self.shared if job is self.job else made
        begun: JobConnections | None = self._plans[key]
        if begun is not None:
            vars(paths)["shared"] = begun.on(network) if begun.network is not network else begun
        return paths

    def _known(self, size: float, starts: ArrayLike, framing: Framing | None) -> Result | None:
        """Return the known time where it is proved to be that of the simulation."""
        if not applies(self.network, self.job, self.known, starts, framing) or self.proof.full >= 0:
            return None
        result = simulate_known(self.network, self.job, self.known, self.proof, size)
        return None if result is None else dataclasses.replace(result, method=CLOSED_FORM.name)

    def _looped(self, network: Network, size: float, starts: ArrayLike, framing: Framing | None) -> Result:
        """Simulate some loops of a job of many, on its network or the reference, unless their time is known."""
        loops = self.known.loops
        assert loops is not None
        plain = network.curves is None and network.protocol is None and self.job.is_regular
        plain = plain and self.job.messages is None and self.job.network is None
        routes = digest_of_routes(self.proof.routes.each(), network) if plain else b""

        def time(where: Network, n_loops: int, part: float) -> float:
            def simulate() -> float:
                job = self._job_of(n_loops)
                return self._on(where, job, loops.key(n_loops)).simulate(part, starts=starts, framing=framing).time

            if not plain:
                return simulate()
            job, entered = self.job, np.asarray(starts, np.float64)
            key = (
                digest_of(where, job.placement.nodes, entered), routes, loops.key(n_loops), part, framing,
                job.weight, job.priority, job.rate_cap, self.routing or where.routing,
            )  # fmt: skip
            return TIMES.get(key, simulate)

        result = simulate_loops(network, loops, (self.job, self.proof), size, starts, framing, time)
        return dataclasses.replace(result, method=LOOPS.name)

    def _job_of(self, n_loops: int) -> FlowJob:
        """Return the job of so many loops, of which there is one for all networks and draws."""
        assert self.known.loops is not None
        key = "job", self.known.loops.key(n_loops)
        if key not in self._plans:
            self._plans[key] = self.known.loops.build(n_loops)
        job: FlowJob = self._plans[key]
        return job

    def with_rest(self, result: Result, size: float, carried: NDArray[np.float64] | None = None) -> Result:
        """Add what the known time has beyond the messages, where nothing is in their way; never less than that time.

        The reference has at least the network's rates. A simulation may still end sooner: where rates are shared, a
        slower link can leave others to the messages that come last, and the time of many loops is continued from few.

        Parameters
        ----------
        result : Result
            Of the messages.
        size : float, bytes
            Size of the job.
        carried : float64[n_links], bytes, optional
            Bytes of all jobs of the simulation; by default the job's own.
        """
        key = f"rest {result.method == LOOPS.name}"  # of the same kind, so that what loops leave out cancels
        if key not in self._plans:
            reference, framing = self.known.reference, self.known.framing
            looped = result.method == LOOPS.name
            alone = self._looped(reference, size, 0.0, framing).time if looped else self.on_reference(size)
            self._plans[key] = self.known.seconds - alone
        rest: float = self._plans[key]
        if rest < 0:  # no more than leaves the busiest link its time
            bytes_of_links = result.link_bytes if carried is None else np.where(result.link_bytes > 0, carried, 0.0)
            busiest = float((bytes_of_links / self.network.bandwidth).max(initial=0.0))
            rest = max(rest, min(0.0, busiest - result.time_from_last_start))
        rest = max(rest, self.known.seconds - result.time)
        last = result.time_from_last_start + rest
        return dataclasses.replace(result, time=result.time + rest, time_from_last_start=last)

    def _needs(self, method: str) -> str:
        """Return what a method that does not apply needs."""
        if method != CLOSED_FORM.name or self.proof.full < 0:
            return super()._needs(method)
        return f"a closed form and no link in the way, and {self.network.link_name(self.proof.full)} may be"
