"""Pods of a placement for Kubernetes: one for each host of a job, on that host and with its GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from commsim.core.errors import InputError
from commsim.formats.markup import write_yaml

from .kube_nodes import RESOURCE
from .kubernetes import object_name

IMAGE = "IMAGE"  # to be replaced


def write_pods(
    placements: Mapping[str, Sequence[str]], starts: Mapping[str, float] | None = None, comments: tuple[str, ...] = ()
) -> str:
    """Write a Pod for each host of each job, in the order in which its ranks use them.

    Parameters
    ----------
    placements : mapping of str to sequence of str
        By job, the host of each rank: the value of the nodes' label ``kubernetes.io/hostname``.

    starts : mapping of str to float, ms
        By job, its start in its iteration time: annotation ``commsim/start-ms``, which no scheduler reads.

    Raises
    ------
    InputError
        If a host's or job's name is not one that Kubernetes allows, or two jobs' names become the same.
    """
    documents, names = [], dict[str, str]()
    for job, hosts in placements.items():
        name = object_name(re.sub(r"[^a-z0-9-]+", "-", job.lower()).strip("-"), f"job {job!r}")
        if names.setdefault(name, job) != job:
            raise InputError(f"jobs {names[name]!r} and {job!r} are both {name!r} in Kubernetes")
        for number, host in enumerate(dict.fromkeys(hosts)):
            ranks = [rank for rank, at in enumerate(hosts) if at == host]
            notes = {"commsim/job": job, "commsim/ranks": ",".join(map(str, ranks))}
            if starts and job in starts:
                notes["commsim/start-ms"] = f"{starts[job]:g}"
            documents.append(_pod(f"{name}-{number}", notes, object_name(host, f"node {host!r}"), len(ranks)))
    return write_yaml(documents, (*comments, f"replace image {IMAGE}, and add commands; Kubernetes chooses the GPUs"))


def _pod(name: str, annotations: Mapping[str, str], host: str, n_gpus: int) -> dict[str, object]:
    on_host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [on_host]}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {**annotations}},
        "spec": {
            "restartPolicy": "Never",
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
            "containers": [
                {"name": "worker", "image": IMAGE, "resources": {"limits": {RESOURCE: n_gpus}}},
            ],
        },
    }
