"""Files that other tools of the field read and write; commsim/core/files has our own."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "profiles",
    "training",
)


def register(house: House) -> None:
    """Bring files of other tools."""
    house.renderings["osu"] = "commsim.formats.cli.osu_table:OSU_TABLE"
    house.services["network of a file"] = "commsim.formats.recognise:network_of_file"
    for suffix in (".yml", ".yaml", ".csv", ".topo", ".graphml"):
        house.networks[suffix] = "commsim.formats.recognise:read_network_file"
    house.machines[".xml"] = "commsim.formats.machines.nccl_topology:read_nccl_topology"
    house.machines[".txt"] = "commsim.formats.machines.nvidia_smi:read_nvidia_smi"
    for suffix in (".xml", ".goal", ".bin", ".et"):
        house.schedules[suffix] = "commsim.formats.convert:read_foreign"
    house.commands("commsim.formats.cli.import_export", workload="", topo="", schedule="")
    house.commands(
        "commsim.formats.cli.convert",
        convert="convert networks, schedules and workloads from and to the files of other tools",
    )
