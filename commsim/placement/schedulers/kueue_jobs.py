"""Jobs for Kueue: each with the level of the network that its placement stays within, required or preferred."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from commsim.core.errors import InputError
from commsim.formats.markup import write_yaml

from .fabric_tree import SwitchTree, without_unlabelled_top
from .kube_nodes import RESOURCE
from .kubernetes import object_name, tier_labels
from .pods import IMAGE

HOSTNAME = "kubernetes.io/hostname"
Wanted = Literal["required", "preferred"]


def level_of(tree: SwitchTree, hosts: Sequence[str], labels: Sequence[str] = ()) -> str | None:
    """Return the label of the smallest level that holds all hosts: a host, or a tier of switches; None if none does.

    Parameters
    ----------
    tree : SwitchTree
        Switches over the hosts.
    hosts : sequence of str
        Host of each rank.
    labels : sequence of str
        Labels of the tiers, the closest first; by default those that topograph sets.
    """
    layers = tree.layers()
    if len(set(hosts)) == 1:
        return HOSTNAME
    for tier, label in enumerate(tier_labels(labels, min(len(layers[host]) for host in hosts))):
        if len({layers[host][tier] for host in hosts}) == 1:
            return label
    return None


def write_kueue_jobs(
    tree: SwitchTree,
    placements: Mapping[str, Sequence[str]],
    wanted: Wanted = "required",
    queue: str = "user-queue",
    comments: tuple[str, ...] = (),
    labels: Sequence[str] = (),
) -> str:
    """Write a suspended Job for each job, of one pod for each of its hosts; Kueue chooses the hosts.

    Parameters
    ----------
    tree : SwitchTree
        Switches over the hosts.
    placements : mapping of str to sequence of str
        By job, the host of each rank.
    wanted : {"required", "preferred"}
        ``required``: the job waits until one domain of the level of its placement has room; a job that no level holds
        gets the widest one as preferred. ``preferred``: Kueue takes the smallest number of domains that it finds.
    queue : str
        Name of the LocalQueue.
    comments : tuple of str
        Lines at the beginning of the file.
    labels : sequence of str
        Labels of the tiers, the closest first, as by :func:`.write_kueue`; by default those that topograph sets.

    Raises
    ------
    InputError
        If a name is not one that Kubernetes allows, two jobs' names become the same, or a job has other numbers of
        GPUs on its hosts: all pods of a Job are alike.
    """
    tree = without_unlabelled_top(tree, labels)
    documents, names = [], dict[str, str]()
    n_tiers = min(len(above) for above in tree.layers().values())
    for job, hosts in placements.items():
        name = object_name(re.sub(r"[^a-z0-9-]+", "-", job.lower()).strip("-"), f"job {job!r}")
        if names.setdefault(name, job) != job:
            raise InputError(f"jobs {names[name]!r} and {job!r} are both {name!r} in Kubernetes")
        counts = set(Counter(hosts).values())
        if len(counts) > 1:
            raise InputError(
                f"job {job} has {min(counts)} to {max(counts)} GPUs on its hosts, and pods of a Job are alike"
            )
        level = level_of(tree, hosts, labels)
        how = wanted if level is not None else "preferred"
        label = level or tier_labels(labels, n_tiers)[-1]
        documents.append(_job(name, queue, {f"kueue.x-k8s.io/podset-{how}-topology": label, "commsim/job": job},
                              len(set(hosts)), counts.pop()))  # fmt: skip
    return write_yaml(documents, (*comments, f"replace image {IMAGE}, and add commands; Kueue chooses the hosts"))


def _job(name: str, queue: str, annotations: Mapping[str, str], n_pods: int, n_gpus: int) -> dict[str, object]:
    template = {
        "metadata": {"annotations": {**annotations}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "worker", "image": IMAGE, "resources": {"limits": {RESOURCE: n_gpus}}}],
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": queue}},
        "spec": {
            "suspend": True, "parallelism": n_pods, "completions": n_pods, "completionMode": "Indexed",
            "template": template,
        },
    }  # fmt: skip
