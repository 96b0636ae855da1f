"""What higher packages offer to lower ones, registered when the first service is asked for; imports wait for a call."""

from __future__ import annotations

from typing import Any

from commsim.core.registry import offer


def _html(value: object) -> str:
    from commsim.pages.notebook import html_of

    return html_of(value)


def _astra_network(path: str) -> Any:
    from commsim.formats.astra.network import read_astra_network

    return read_astra_network(path)


def _nccl_topology() -> Any:
    from commsim.formats.machines.nccl_topology import read_nccl_topology

    return read_nccl_topology


def _nvidia_smi() -> Any:
    from commsim.formats.machines.nvidia_smi import read_nvidia_smi

    return read_nvidia_smi


def _nccl_graphs(path: str, gpu: str) -> Any:
    from commsim.nccl.tuner_and_graph_files import read_nccl_graphs

    return read_nccl_graphs(path, gpu)


def _nccl_tuner(path: str) -> Any:
    from commsim.nccl.tuner_and_graph_files import read_tuner

    return read_tuner(path)


def _network_of_table(tree: Any, path: Any) -> Any:
    from commsim.core.files.fields import TableFields
    from commsim.prediction.inputs import read_topology

    top = TableFields(tree, path)
    top.only("topology", "hosts")  # the hosts of a cluster say how many GPUs are free, which no network does
    return read_topology(top, path)


def _synthesized(scenario: Any) -> Any:
    from commsim.ranking.synthesis.ready import plan_synthesized

    return plan_synthesized(scenario)


def _placement_strategies() -> Any:
    import commsim.placement.strategies

    return commsim.placement.strategies


def register() -> None:
    """Register all services."""
    offer("html of a value", _html)
    offer("network of ASTRA-sim", _astra_network)
    offer("machine file .xml", _nccl_topology)
    offer("machine file .txt", _nvidia_smi)
    offer("network of a table", _network_of_table)
    offer("NCCL's channels", _nccl_graphs)
    offer("NCCL's tuner", _nccl_tuner)
    offer("synthesized plan", _synthesized)
    offer("placement strategies", _placement_strategies)
