"""Binds pods for Kubernetes' scheduler: the pod's GPUs are reserved for its job, then the API server is told."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace

from pydantic import ValidationError

from commsim.core.errors import InputError, shorten

from .guard import Refusal
from .kube_api import KubeApi
from .models import BindingArgs, Pod
from .pod_jobs import gpus_of_pod, job_of_pod
from .state import ClusterState, JobRecord

_REMEMBERED = 20_000  # pods that were asked about


class Binder:
    """Remembers the pods of requests, since a binding names its pod only.

    Parameters
    ----------
    api : KubeApi
        The API server.
    resource : str
        Resource that counts GPUs.
    """

    def __init__(self, api: KubeApi, resource: str) -> None:
        self._api, self._resource = api, resource
        self._pods: OrderedDict[str, Pod] = OrderedDict()

    def remember(self, pod: Pod) -> None:
        """Keep a pod that a request was about."""
        if pod.metadata.uid:
            self._pods[pod.metadata.uid] = pod
            self._pods.move_to_end(pod.metadata.uid)
            if len(self._pods) > _REMEMBERED:
                self._pods.popitem(last=False)

    async def bind(
        self,
        args: BindingArgs,
        state: Callable[[], ClusterState],
        change: Callable[[Callable[[], list[JobRecord]]], Awaitable[None]],
    ) -> None:
        """Reserve the GPUs of a pod, and bind it; where the API server refuses, nothing is reserved.

        Parameters
        ----------
        args : BindingArgs
            The request.
        state : callable
            Returns the state; called in the thread that changes it.
        change : callable
            Puts the jobs that a function returns, called in that thread.

        Raises
        ------
        InputError, Refusal
            If the job is described wrongly, its GPUs are taken, or the API server refuses.
        """
        known = self._pods.get(args.PodUID)
        pod = known if known is not None else await asyncio.to_thread(self._read, args)
        n_gpus = gpus_of_pod(pod, self._resource)
        has = job_of_pod(pod, state()) is not None and n_gpus > 0

        def with_pod() -> list[JobRecord]:
            job = _required(pod, state())
            if n_gpus > job.n_left:
                raise Refusal(409, f"the pod asks for {n_gpus} GPUs, but {job.n_left} of job {job.job.name} are left")
            return [replace(job, placed=(*job.placed, *[args.Node] * n_gpus))]

        def without_pod() -> list[JobRecord]:
            job, hosts = _required(pod, state()), state().host_of  # other pods may have been bound since
            own = [i for i, node in enumerate(job.placed) if args.Node in (node, hosts[node])][-n_gpus:]
            placed = tuple(node for i, node in enumerate(job.placed) if i not in own)
            return [replace(job, job=replace(job.job, start=None), placed=placed)]

        if has:
            await change(with_pod)
        try:
            await asyncio.to_thread(self._api.bind, args.PodNamespace, args.PodName, args.PodUID, args.Node)
        except Refusal as refusal:
            if not (refusal.status == 503 and await asyncio.to_thread(self._is_bound, args)):
                if has:
                    await change(without_pod)
                raise
        self._pods.pop(args.PodUID, None)

    def _is_bound(self, args: BindingArgs) -> bool:
        """Whether the pod has the node though no answer said so."""
        try:
            tree = self._api.pod(args.PodNamespace, args.PodName)
        except Refusal:
            return False
        spec, metadata = tree.get("spec"), tree.get("metadata")
        is_same = isinstance(metadata, dict) and metadata.get("uid") == args.PodUID
        return is_same and isinstance(spec, dict) and spec.get("nodeName") == args.Node

    def _read(self, args: BindingArgs) -> Pod:
        tree = self._api.pod(args.PodNamespace, args.PodName)
        try:
            pod = Pod.model_validate(tree)
        except ValidationError:
            raise Refusal(502, f"the API server has no pod that can be read as {shorten(args.PodName)}") from None
        if args.PodUID and pod.metadata.uid != args.PodUID:
            raise Refusal(409, f"pod {shorten(args.PodName)} has another uid now")
        return pod


def _required(pod: Pod, state: ClusterState) -> JobRecord:
    job = job_of_pod(pod, state)
    if job is None:
        raise InputError("the job of the pod is no longer known")
    return job
