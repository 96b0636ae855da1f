"""What NCCL or RCCL would launch on a network at a size: algorithm, protocol, channels, and where switches add."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from collectives.nccl.call import ALLOWED, ANY, PROTOCOLS, max_channels, release_of
from collectives.nccl.launch import VERSION, NcclParameters, launch
from collectives.nccl.pieces import EQUAL
from collectives.nccl.rules import cut_call, first_loops, loops_of
from commsim.core.cache import once
from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.machines.hardware import maker_of
from commsim.core.network import Network
from commsim.core.network_queries import units
from commsim.core.placement import Placement
from commsim.core.remark import ASSUMED, Remark
from commsim.core.schedule import Schedule
from commsim.core.units import count_text
from commsim.engine.flow_job import FlowJob
from commsim.engine.ways.closed_form_proof import Loops
from commsim.nccl.call_costs import CallCosts, call_costs
from commsim.nccl.choice import fastest, told_choice, usable_protocols
from commsim.nccl.gpu_costs import costs
from commsim.nccl.machine_links import adding_switches
from commsim.nccl.model_versions import check_release
from commsim.nccl.nccl_setting import NcclSetting
from commsim.nccl.of_network import NcclOptions, setting_of, shown_by_network
from commsim.nccl.plans.graph_nics import seen_by_channels
from commsim.nccl.plans.link_rings import rings_of_nccl
from commsim.nccl.plans.nccl_files import NcclFiles
from commsim.nccl.plans.rccl_rings import rings_of_rccl, schedule_of_rccl
from commsim.nccl.plans.sharp_placement import SharpPlacement, place_sharp
from commsim.nccl.prediction import EXCHANGES, direct_heads, over_releases
from commsim.nccl.rccl_costs import RcclCosts, costs_of
from commsim.nccl.site import Site, site_of
from commsim.nccl.tuning_table import PATTERN, Cell, cells, lacks_nvls_of_two, nvls_parameters, ring_instead
from commsim.prediction.collective_names import check_library, with_gpus
from commsim.prediction.good_parameters import by_rails

# Algorithms that a helper in each machine's switch adds for.
IN_MACHINES = ("nvls", "nvls_tree")
# Algorithms that a network adds for, on several machines.
IN_NETWORK = ("nvls", "collnet_chain", "collnet_direct")
AUTO = "auto"
# Operations whose costs are known; of unequal messages only links cost time.
PRICED = (*ALLOWED, *EXCHANGES)
# Messages of a call up to which all are simulated; and the loops that are where there are more.
MAX_MESSAGES, FEW_LOOPS = 2**21, (8, 16)
# Bytes of a packet on the wire.
PACKET = 2048


@dataclass(frozen=True, slots=True, eq=False)
class NcclLaunch:
    """A collective of NCCL on placed ranks, ready to be built at any size.

    Parameters
    ----------
    build : callable
        Builder of its schedule.
    arguments : mapping of str to value
        Parameters that the user gave.
    operation : str
        Name of the operation.
    network, placement : Network, Placement
        Network and placement of the ranks.
    machines : tuple of tuple of int
        Ranks of each machine.
    setting : NcclSetting or None
        What NCCL knows; None where it would choose nothing.
    notes : tuple of Remark
        What should be printed.
    decided : NcclFiles
        What files say: rules of the tuner plugin count before NCCL's own estimate.
    rings : mapping of str to value
        Parameters that the machines decide where NCCL's rules do not: NICs of a machine, RCCL's rings.
    sharp : SharpPlacement, optional
        Switches of the network that add; None without one.
    given_site : Site, optional
        What NCCL takes the place for, if more is known of it than the network says.
    """

    build: Callable[..., Schedule]
    arguments: Mapping[str, Any]
    operation: str
    network: Network
    placement: Placement
    machines: tuple[tuple[int, ...], ...]
    setting: NcclSetting | None
    notes: tuple[Remark, ...]
    decided: NcclFiles = field(default_factory=NcclFiles)
    rings: Mapping[str, Any] = field(default_factory=dict)
    sharp: SharpPlacement | None = None
    given_site: Site | None = None
    _facts: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def rccl(self) -> RcclCosts | None:
        """What RCCL's calls cost on the GPUs; None for NCCL, and where that is not known."""
        return costs_of(self.network.hardware) if self.build.__name__.startswith("rccl") else None

    @property
    def is_known(self) -> bool:
        """Whether the network says that its GPUs are NVIDIA's, so that costs of their primitives hold."""
        return self.setting is not None and ("gpu" in self.decided.words or maker_of(self.network.hardware) == "nvidia")

    def parameters(self, size: float) -> dict[str, Any]:
        """Return the builder's parameters at a size."""
        chosen: dict[str, Any] = {"machines": self.machines, "n_bytes": max(1, int(size)), **self.rings}
        if self.setting is not None:
            channels = self.setting.channels["ring"].n
            chosen |= {name: n for name in ("buffer", "net_chunk") if (n := getattr(self.setting, name))}
            if self.operation in ALLOWED:
                ruled = self.decided.rule(self.operation, int(size), self.setting.n_nodes, self.setting.n_ranks)
                cell = self._cell(size, {**ruled, **self.arguments})
                chosen |= {"algorithm": cell.algorithm, "protocol": cell.protocol}
                chosen |= {"slow": True} if self.setting.has_slow_rings else {}
                chosen |= nvls_parameters(self.setting, cell.algorithm)
                if cell.algorithm == "collnet_direct" and (site := self.known_site) is not None:
                    chosen["heads"] = direct_heads(site, self.operation)
                channels = ruled.get("channels", self._channels(cell.algorithm))
            chosen["channels"] = min(channels, max_channels(self.setting.version))
        if self.rccl is not None and self.operation in ALLOWED:
            free = not {"rings", "algorithm"} & self.arguments.keys()
            chosen |= schedule_of_rccl(
                self.network, self.placement, self.machines, self.operation, size, self.rings, free=free
            )
        if self.sharp is not None and len(self.sharp.switches) > 1 and chosen.get("algorithm") in IN_NETWORK:
            chosen["sharp"] = self.sharp.trees
        known = inspect.signature(self.build).parameters
        return {key: value for key, value in (chosen | dict(self.arguments)).items() if key in known}

    def _cell(self, size: float, parameters: Mapping[str, Any]) -> Cell:
        """Return the cell that NCCL takes among those that the user and the tuner's rules left to it."""
        setting, site, known = self.setting, self.known_site, costs()
        assert setting is not None
        table = cells(setting, self.operation)
        algorithm, protocol = (parameters.get(key, AUTO) for key in ("algorithm", "protocol"))
        usable = usable_protocols(site, known) if protocol == AUTO else (protocol,)
        among = known.algorithms_over(site.network if site else "") if algorithm == AUTO else (algorithm,)
        left = [cell for cell in table if cell.algorithm in among and cell.protocol in usable]
        # What the user forces is launched even where NCCL would not take it by itself.
        forced = Cell("ring" if algorithm == AUTO else algorithm, "simple" if protocol == AUTO else protocol, 0.0, 0.0)
        return fastest(setting, self.operation, filter(self._can, left), int(size)) or forced

    def _can(self, cell: Cell) -> bool:
        """Whether the schedule of a cell can be built here."""
        return cell.algorithm not in (*IN_MACHINES, "collnet_direct") or len(set(map(len, self.machines))) == 1

    def _channels(self, algorithm: str) -> int:
        assert self.setting is not None
        pattern = PATTERN.get(algorithm, algorithm)
        if pattern == "nvls":
            return self.setting.nvls_call(algorithm)[0]
        if self.given_site is not None:
            return self.given_site.max_channels
        return min(self.setting.channels_of(pattern), max_channels(self.setting.version))

    def costs(self, size: float, parameters: Mapping[str, Any]) -> CallCosts | None:
        """Return what a call costs; None where the costs of its primitives or its network are not known."""
        if self.setting is None or not self.is_known or self.operation not in PRICED:
            return None
        try:
            found = call_costs(seen_by_channels(self, parameters), self.site, self.operation, int(size), parameters)
        except InputError:
            return None
        if self.arguments.get("version") != ANY:
            return found
        algorithm, protocol = (str(self.arguments.get(key, "")) for key in ("algorithm", "protocol"))
        low, high = over_releases(self.site, self.operation, int(size), algorithm, protocol)
        return found._replace(spread=(low / found.seconds, high / found.seconds))

    def why_links_only(self, size: float, parameters: Mapping[str, Any]) -> str:
        """Describe why only links cost time; empty where they do not."""
        if self.setting is None:
            return "NCCL's choice is not known here"
        if self.operation not in PRICED:
            return "what unequal messages cost is not known"
        if not self.is_known:
            return f"{self.network.name} does not say that its GPUs are NVIDIA's ({with_gpus(self.network)})"
        try:
            call_costs(self.network, self.site, self.operation, int(size), parameters)
        except InputError as error:
            return str(error)
        return ""

    def loops(self, schedule: Schedule, parameters: Mapping[str, Any], job: FlowJob) -> Loops | None:
        """Return a call of many loops and messages as two of few; None where all can be simulated."""
        if schedule.n_transfers <= MAX_MESSAGES or self.operation not in ALLOWED:
            return None
        names = {field.name for field in dataclasses.fields(NcclParameters)}
        asked = NcclParameters(
            schedule.name, self.operation, schedule.n_ranks,
            **{key: value for key, value in parameters.items() if key in names},
        )  # fmt: skip
        parts = cut_call(asked.call())
        total = min(map(loops_of, parts))
        if total < 2 * FEW_LOOPS[1] or total < (1 - EQUAL) * max(map(loops_of, parts)):
            return None

        def build(n_loops: int) -> FlowJob:
            made = launch(dataclasses.replace(asked, loops=n_loops), schedule.root)
            made = dataclasses.replace(made, name=schedule.name, operation=schedule.operation, root=schedule.root)
            return dataclasses.replace(job, schedule=made)

        def key(n_loops: int) -> Hashable:
            every = dataclasses.replace(asked, n_bytes=0)  # of the size a schedule has its parts only
            return every, tuple(first_loops(part, n_loops) for part in parts), schedule.root

        return Loops(build, key, FEW_LOOPS, max(map(loops_of, parts)))

    @property
    def site(self) -> Site:
        """What NCCL takes the place for; raises an InputError where its network is not known."""
        assert self.setting is not None
        find = functools.partial(site_of, self.network, self.placement, self.setting)
        return self.given_site or once(self._facts, "site", find)

    @property
    def known_site(self) -> Site | None:
        """What NCCL takes the place for; None where that is not known."""
        try:
            return self.site if self.is_known else None
        except InputError:
            return None

    def placed(self, schedule: Schedule, parameters: Mapping[str, Any]) -> Placement:
        """Place the ranks as they are, and helpers on switches that add.

        Raises
        ------
        InputError
            If the algorithm needs a switch that adds, and the network has none.
        """
        network, nodes = self.network, self.placement.nodes[: schedule.n_ranks]
        if not schedule.n_helpers:
            return Placement(nodes)
        unit = units(network)
        name = f"{schedule.name}: algorithm={parameters['algorithm']}"
        if parameters["algorithm"] in IN_MACHINES:
            if self.setting is not None and lacks_nvls_of_two(self.setting.version, min(map(len, self.machines))):
                raise InputError(f"{name} needs 3 GPUs of a machine before NCCL 2.28; take ring")
            helpers = []
            for machine in self.machines:
                inside = adding_switches(network, unit, nodes[list(machine)])
                if not inside.size:
                    raise InputError(f"{name} needs a switch in each machine that reduces (NVLink SHARP); take ring")
                helpers.append(int(inside[0]))
            if schedule.n_helpers == len(helpers):
                return Placement([*nodes.tolist(), *helpers])
            nodes = np.append(nodes, helpers)
        if self.sharp is None:
            tree = "nvls_tree (NVLS in each machine, trees between), " if parameters["algorithm"] == "nvls" else ""
            what = "a switch in the network that reduces (SHARP), as machines with sharp=on have, dgx-h100:sharp=on@..."
            raise InputError(f"{name} needs {what}; take {tree}ring or tree")
        return Placement([*nodes.tolist(), *self.sharp.switches])

    def framing(self, parameters: Mapping[str, Any]) -> Framing | None:
        """Return what a protocol's flags add on the wire; None where they add nothing."""
        protocol = PROTOCOLS.get(parameters.get("protocol", "simple"), PROTOCOLS["simple"])
        if protocol.wire == protocol.payload:
            return None
        return Framing(protocol.payload, protocol.wire - protocol.payload)

    @staticmethod
    def in_packets(framing: Framing) -> Framing:
        """Return the same share of flags in packets of a network, which a line of LL or LL128 is none of."""
        times = PACKET // (framing.payload + framing.header)
        return Framing(framing.payload * times, framing.header * times)


def nccl_launch(
    build: Callable[..., Schedule],
    operation: str,
    parameters: Mapping[str, Any],
    network: Network,
    placement: Placement,
    n_ranks: int,
    decided: NcclFiles | None = None,
) -> NcclLaunch:
    """Derive what NCCL needs to know from a network and placed ranks.

    Parameters
    ----------
    build, operation : callable, str
        Builder of the schedule, and name of the operation.
    parameters : mapping of str to value
        The user's parameters; ``auto`` is none.
    network, placement, n_ranks : Network, Placement, int
        Network, placement of the ranks, and their number.
    decided : NcclFiles, optional
        What files say.
    """
    decided = decided or NcclFiles()
    parameters = {key: value for key, value in parameters.items() if value != AUTO}
    unit = units(network)[placement.nodes[:n_ranks]]
    _, first, number = np.unique(unit, return_index=True, return_inverse=True)
    machines = tuple(tuple(np.flatnonzero(number == which).tolist()) for which in np.argsort(first))
    name, setting, notes = build.__name__, None, [Remark("machines", f"{build.__name__}: {_machines_text(machines)}")]
    if "gpu" not in decided.words:
        check_library(name, network)
    known = NcclOptions(version=release_of(parameters.get("version", VERSION)), **decided.words)
    if decided.graph:  # a file that is wrong is refused, where a network that NCCL does not know is not
        gpu = setting_of(network, placement, n_ranks, known).gpu
        known = replace(known, by_pattern=decided.channels(gpu))
    rings: dict[str, Any] = {}
    if name.startswith("rccl"):
        if operation in ALLOWED:
            rings, note = rings_of_rccl(network, placement, machines)
            notes.append(Remark("library-rings", f"{name}: {note}"))
    elif n_ranks > 1:
        machines = by_rails(network, placement, machines)
        rings = rings_of_nccl(network, placement, machines)
        try:
            setting = setting_of(network, placement, n_ranks, known)
        except InputError as error:
            notes.append(Remark("library-unknown", f"{name}: 2 channels of Simple", needed=True, details=str(error)))
        else:
            check_release(setting.gpu, setting.version)
            parameters, told = ring_instead(setting, name, parameters)
            notes += told
    sharp = place_sharp(network, placement, machines) if len(machines) > 1 and not name.startswith("rccl") else None
    found = NcclLaunch(build, parameters, operation, network, placement, machines, setting, (), decided, rings, sharp)
    if setting is not None and operation in ALLOWED and not {"algorithm", "protocol"} <= parameters.keys():
        notes.append(Remark("library-choice", f"{name}: {told_choice(setting, operation, parameters)}"))
    notes += [] if setting is None else shown_by_network(setting)
    assumed = [] if setting is None else [one.what for one in setting.assumed if not one.code]
    if setting is not None and sharp is not None and len(sharp.switches) > 1:
        assumed.insert(0, sharp.text(network))
    if assumed and setting is not None and "version" not in parameters:
        assumed.append(f"NCCL is {setting.version[0]}.{setting.version[1]} (version=)")
    if assumed:
        text = f"{name}: {count_text(len(assumed), 'setting')} assumed"
        notes.append(Remark(ASSUMED, text, details="; ".join(assumed)))
    return dataclasses.replace(found, notes=tuple(notes))


def _machines_text(machines: tuple[tuple[int, ...], ...]) -> str:
    sizes = sorted({len(machine) for machine in machines})
    return f"{count_text(len(machines), 'machine')} of {' or '.join(map(str, sizes))} rank{'s' * (sizes != [1])}"
