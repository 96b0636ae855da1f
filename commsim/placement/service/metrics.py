"""What the service does, as Prometheus reads it: requests by path and status, their durations, jobs and free GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from commsim.core.extras import needs

from .guard import Refusal

if TYPE_CHECKING:
    from .placement_service import PlacementService

# Seconds; requests for 500 nodes take 1 to 100 ms.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counts requests; parameters are those of the service.

    Parameters
    ----------
    service : PlacementService
        Service with the jobs and GPUs that are counted.

    Attributes
    ----------
    paths : frozenset of str
        Paths that are counted by name; all others together, so that nobody can make series without end.
    """

    def __init__(self, service: PlacementService) -> None:
        self.paths = frozenset[str]()
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
        except ModuleNotFoundError:
            self._registry = None
            return
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "commsim_requests", "Requests by path and status.", ("path", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "commsim_request_seconds", "From the head of a request to its answer.", ("path",), buckets=BUCKETS,
            registry=self._registry,
        )  # fmt: skip
        jobs = Gauge("commsim_jobs", "Jobs that are known.", registry=self._registry)
        jobs.set_function(lambda: len(service.known))
        free = Gauge("commsim_free_gpus", "GPUs without a job.", registry=self._registry)
        free.set_function(lambda: service.n_free)
        self._registry.register(_Ignored(service))

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        if self._registry is not None:
            name = path if path in self.paths else "/jobs/NAME" if path.startswith("/jobs/") else "other"
            self._requests.labels(name, str(status)).inc()
            self._seconds.labels(name).observe(seconds)

    def text(self) -> bytes:
        """Return all in the text format of Prometheus.

        Raises
        ------
        Refusal
            If its client is not installed.
        """
        if self._registry is None:
            raise Refusal(503, needs("/metrics needs prometheus-client", "serve"))
        from prometheus_client import generate_latest

        return bytes(generate_latest(self._registry))


class _Ignored:
    """Requests about pods that any node will do for, by the reason; counted by the service itself."""

    def __init__(self, service: PlacementService) -> None:
        self.paths = frozenset[str]()
        self._service = service

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily("commsim_ignored_pods", "Requests about pods that are ignored.", labels=["reason"])
        for reason, count in sorted(self._service.ignored.items()):
            family.add_metric([reason], count)
        yield family
