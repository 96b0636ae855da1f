"""``import``, ``export`` and ``formats`` of topologies, schedules and workloads: files of other tools."""

from __future__ import annotations

from commsim.cli import schedule, topo
from commsim.cli.flags import Flags, Verb, flag

from .convert import FileExportConfig, FileImportConfig, Writing, convert_file, formats


class TopologyConfig(Writing, topo.TopologyFlags):
    """All flags of ``commsim topo export``."""

    output: str = flag("-o", required=True, metavar="FILE", help="file whose suffix names the format")


class ScheduleConfig(Writing, schedule.ScheduleFlags):
    """All flags of ``commsim schedule export``."""

    output: str = flag("-o", required=True, metavar="FILE", help="file to write: .xml, .goal, .bin, .et or .cm")


COMMANDS = {
    "topo import": Verb(
        FileImportConfig,
        lambda config: convert_file(config, config.source, config.output),
        "read a network of another tool, or a list of cables (`topo formats`), and write ours",
    ),
    "topo export": Verb(
        TopologyConfig,
        lambda config: convert_file(config, config.topology, config.output, code_is="network"),
        "write a file in the format of ASTRA-sim, InfraGraph, GraphML, node-link, ns-3, SimAI or htsim",
    ),
    "topo formats": Verb(Flags, lambda _: formats("network"), "list the formats of other tools"),
    "schedule import": Verb(
        FileImportConfig,
        lambda config: convert_file(config, config.source, config.output),
        "read an MSCCL, GOAL or Chakra file, check it, and write an .npz file",
    ),
    "schedule export": Verb(
        ScheduleConfig,
        lambda config: convert_file(config, config.collective, config.output, config.ranks, code_is="schedule"),
        "write an MSCCL, GOAL or Chakra file, or the flows for htsim",
    ),
    "schedule formats": Verb(Flags, lambda _: formats("schedule"), "list the formats of other tools"),
    "workload import": Verb(
        FileImportConfig,
        lambda config: convert_file(config, config.source, config.output),
        "read a GOAL or Chakra file, and write a graph of tasks",
    ),
    "workload export": Verb(
        FileExportConfig,
        lambda config: convert_file(config, config.source, config.output),
        "write a graph of tasks, or a GOAL or Chakra file, in the format of another tool",
    ),
    "workload formats": Verb(Flags, lambda _: formats("workload"), "list the formats of other tools"),
}
