"""A placement service in a thread of its own, and clients that speak to it byte by byte."""

import contextlib
import http.client
import json
import socket
import threading

import jsonschema

from commsim.placement.cluster import Cluster
from commsim.placement.service.answers import schemas
from commsim.placement.service.http_server import Listening, bound, server_of
from commsim.placement.service.limits import Limits
from commsim.placement.service.placement_service import PlacementService, Preferences
from topologies.leaf_spine import leaf_spine

# Schema of each address's answers.
ANSWERS = {
    "/filter": "FilterResult", "/bind": "BindingResult", "/place": "Candidates", "/moves": "JobMoves",
    "/jobs": "KnownJobs", "/cluster": "KnownCluster", "/healthz": "Health",
}  # fmt: skip
SCHEMAS = {name: jsonschema.validators.validator_for(one)(one) for name, one in schemas().items()}  # once for all tests
for checked in SCHEMAS.values():
    checked.check_schema(checked.schema)
LIMIT_S = 60  # of what takes milliseconds on a machine that is not busy


def small_cluster(n_leaves=3, hosts_per_leaf=4, gpus=2):
    network = leaf_spine(n_leaves, 1, hosts_per_leaf, bandwidth=6.25e9)  # 50 Gb/s
    return Cluster(network, [gpus if kind == 0 else 0 for kind in network.kind])


def row(name="new", gpus=4, period=200.0, up=100.0, rate=40.0, offset=0.0, **more):
    phases = [{"offset_ms": offset, "dur_ms": up, "rate_Gbps": rate}]
    return {"job": name, "gpus": gpus, "iter_time_ms": period, "phases": phases, **more}


def pod(job=None, gpus=1, labels=None):
    annotations = {} if job is None else {"commsim/job": job if isinstance(job, str) else json.dumps(job)}
    containers = [{"name": "worker", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}] if gpus else []
    return {
        "metadata": {"name": "pod", "annotations": annotations, "labels": labels},
        "spec": {"containers": containers},
    }


def check_answer(path, status, answer):
    """Hold an answer against its own schema: each that a test gets."""
    address = "/" + path.partition("?")[0].split("/")[1]
    if status >= 400:
        SCHEMAS["Problem"].validate(answer)
    elif address in ANSWERS:
        SCHEMAS[ANSWERS[address]].validate(answer)
    elif address == "/prioritize":
        for one in answer:
            SCHEMAS["HostPriority"].validate(one)


class Service:
    """What a test needs of a running one."""

    def __init__(self, port, service):
        self.port, self.service = port, service

    def ask(self, method, path, tree=None, headers=None, body=None):
        """Status and decoded answer of one request."""
        status, _, answer = self.whole(method, path, tree, headers, body)
        return status, answer

    def whole(self, method, path, tree=None, headers=None, body=None):
        """Status, headers in lower case and decoded answer of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        with contextlib.closing(connection):
            body = json.dumps(tree).encode() if tree is not None else body
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            got = {name.lower(): value for name, value in answer.getheaders()}
            tree = json.loads(answer.read())
            check_answer(path, answer.status, tree)
            return answer.status, got, tree

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S)


SMALL = small_cluster()


@contextlib.contextmanager
def running(cluster=SMALL, token=None, min_score=None, log=False, store=None, host="127.0.0.1", api=None, **limits):
    service = PlacementService(cluster, Preferences(min_score=min_score, api=api), store)
    listening = Listening(host, limits=Limits(token, **limits), log=log)
    with bound(host, 0) as listener:
        server = server_of(service, listening)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Service(listener.getsockname()[1], service)  # it listens already
        finally:
            server.should_exit = True
            thread.join(LIMIT_S)
            service.close()
            assert not thread.is_alive()


def read_all(listener):
    """Everything until the other side closes, or resets."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := listener.recv(65536):
            parts.append(part)
    return b"".join(parts)
