"""``commsim place serve``: the HTTP service that schedulers ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.cli.flags import DefaultOf, Flags, flag, switched
from commsim.cli.flags.faults import HASHES
from commsim.core.errors import BackendError, InputError
from commsim.core.extras import needs
from commsim.core.units import count_text, parse_size, parse_time, write_size, write_time
from commsim.live.cli.serve import port_number
from commsim.report.answer import Answer
from commsim.report.terminal import announce

if TYPE_CHECKING:
    from commsim.placement.service.kube_api import KubeApi


class PlaceServeConfig(Flags):
    """All flags of ``commsim place serve``."""

    cluster: str | None = flag(
        metavar="CLUSTER.toml", help="the cluster (default: that of the store, or of POST /cluster)"
    )
    jobs: str | None = flag(
        metavar="JOBS.json",
        help="jobs that are already running, with their placement, for a store without a version (default: none)",
    )
    host: str = flag(
        default=DefaultOf("commsim.placement.service.limits:LOOPBACK"),
        metavar="ADDRESS",
        help="address to listen on, or unix:PATH for a proxy; addresses of other machines need --token-file",
    )
    port: int = flag(default=0, metavar="N", help="port; 0: any free one")
    token_file: str | None = flag(
        metavar="FILE",
        help="token that clients must send as Authorization: Bearer; plain HTTP does not protect it; use a TLS proxy",
    )
    store: str | None = flag(metavar="FILE.sqlite", help="file for the jobs, from which a restarted service reads them")
    max_body: str = flag(
        default=DefaultOf("commsim.placement.service.limits:Limits.body_bytes", write_size),
        metavar="SIZE",
        help="largest request",
    )
    timeout: str = flag(
        default=DefaultOf("commsim.placement.service.limits:Limits.seconds", write_time),
        metavar="TIME",
        help="time for the body of a request to arrive",
    )
    gpu_resource: str = flag(
        default=DefaultOf("commsim.placement.service.placement_service:Preferences.gpu_resource"),
        metavar="NAME",
        help="resource that pods request",
    )
    min_score: float | None = flag(
        metavar="S", help="filter out nodes where a link's score would be below this (default: none)"
    )
    kube_api: str | None = flag(
        metavar="URL",
        help="API server of Kubernetes, for bindVerb: http://127.0.0.1:8001 of kubectl proxy, or https://...",
    )
    kube_token: str | None = flag(metavar="FILE", help="token that the API server takes (default: none)")
    kube_ca: str | None = flag(metavar="FILE", help="certificates of the API server (default: those of the system)")
    hashes: int | None = flag(
        metavar="N",
        help="number of hashes of ECMP for which placements are evaluated (default: %(usual)s)",
        shown={"usual": HASHES},
    )
    log: bool = switched(help="print one line per request on standard error")


def run(config: PlaceServeConfig) -> Answer:
    """Serve until Ctrl-C (SIGINT) or SIGTERM; requests under way are answered first."""
    from commsim.placement.cluster import read_cluster

    require_extra()
    from commsim.placement.service.http_server import Listening, read_token, serve
    from commsim.placement.service.job_store import JobStore
    from commsim.placement.service.limits import Limits
    from commsim.placement.service.placement_service import PlacementService, Preferences

    if config.min_score is not None and not config.min_score <= 1:
        raise InputError(f"--min-score is a score, at most 1, got {config.min_score}")
    token = read_token(config.token_file) if config.token_file else None
    body_bytes = int(parse_size(config.max_body, "--max-body"))
    if body_bytes < 1024:
        raise InputError(f"--max-body is at least 1KiB, or no request has room for a job, got {config.max_body}")
    host = "127.0.0.1" if config.host == "localhost" else config.host
    limits = Limits(token, body_bytes, _time(config.timeout, "--timeout"))
    listening = Listening(host, port_number(config.port, 0), limits, config.log)
    cluster = read_cluster(config.cluster) if config.cluster else None
    store = JobStore(config.store) if config.store else None
    preferences = Preferences(config.gpu_resource, config.min_score, _api(config), config.hashes)
    service = PlacementService(cluster, preferences, store)
    if config.jobs and not service.has_cluster:
        raise InputError("--jobs needs --cluster, on whose hosts the jobs are placed")
    kept = store.version() if store is not None else 0
    if config.jobs and not kept:  # jobs that ended since would come back
        service.load(_rows(config.jobs), config.jobs)
    service.warm_up()

    def started(url: str) -> None:
        what = "no cluster before POST /cluster"
        if service.has_cluster:
            cluster = service.state.cluster
            free = int(cluster.free.sum())
            what = f"{cluster.network.name}, {len(service.state.gpus)} hosts, {free} GPUs"
        if kept:
            unread = f", and {config.jobs} is not read" if config.jobs else ""
            what += f"; {count_text(len(service.known), 'job')} of {config.store}, version {kept}{unread}"
        announce(f"serving on {url}: {what}; /docs describes it")

    serve(service, listening, started)
    return Answer()


def _api(config: PlaceServeConfig) -> KubeApi | None:
    """Return the API server, if one is named."""
    from commsim.placement.service.http_server import read_token
    from commsim.placement.service.kube_api import KubeApi

    if config.kube_api is None:
        if flags := config.given("kube_token", "kube_ca"):
            raise InputError(f"{flags[0]} needs --kube-api")
        return None
    return KubeApi(config.kube_api, read_token(config.kube_token) if config.kube_token else None, config.kube_ca)


def _rows(path: str) -> Any:
    from commsim.core.files.whole_files import read_any
    from commsim.training.sharing.job_rows import rows_of

    return rows_of(read_any(path), path)[0]


def _time(text: str, name: str) -> float:
    seconds = parse_time(text, name)
    if not 0.1 <= seconds <= 3600:
        raise InputError(f"{name} is from 100ms to 1h, got {text}")
    return seconds


def service_schemas() -> dict[str, Any]:
    """Return the schemas of the service's requests and answers by name, with ``jobs.json``, the file of jobs."""
    require_extra()
    from commsim.placement.service.answers import schemas

    return schemas()


def require_extra() -> None:
    """Refuse to go on without the packages of the service."""
    try:
        import fastapi  # noqa: F401
        import fastapi_offline  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise BackendError(needs(f"{error.name} is missing", "serve")) from None
