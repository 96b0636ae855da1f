"""The plan of a collective of NCCL or RCCL: at each size the schedule that the library launches, with its costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from collectives import COLLECTIVES
from collectives.nccl.call import ALLOWED
from collectives.nccl.launch import SIZE
from commsim.core.cache import Cache, once
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import RANK_ORDERS, Placement
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.units import format_size
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.ways.closed_form_proof import ClosedForm, carried
from commsim.engine.ways.closed_form_way import ClosedFormPaths
from commsim.nccl.choice import MAX_NAMED, ranges
from commsim.nccl.interval_remarks import no_interval, of_tables
from commsim.nccl.intervals import RCCL, interval_of, intervals, kind_of, size_class
from commsim.nccl.machine_links import has_islands
from commsim.nccl.nccl_setting import NcclSetting
from commsim.nccl.of_network import shown_by_cables
from commsim.nccl.option_words import WORDS
from commsim.nccl.plans.nccl_files import READERS, split_files
from commsim.nccl.plans.nccl_launch import NcclLaunch, nccl_launch
from commsim.nccl.prediction import faster_than_chosen
from commsim.nccl.rccl_costs import priced
from commsim.nccl.site import Site
from commsim.prediction.bounds.cuts import floor_of
from commsim.prediction.bounds.limited_by import NICS, limit_of
from commsim.prediction.build import CollectiveRequest, PlacedSchedule, laid_out
from commsim.prediction.inputs import load_placement
from commsim.prediction.plans.dense import Plan
from commsim.prediction.plans.run import Run
from commsim.prediction.scenario import Wish

# Plans of what was asked for last, with their networks, which so keep their id.
PLANS: Cache[tuple[Network, NcclPlan]] = Cache(
    4, lambda kept: sum(len(b.body) for b in kept[1].schedule.blocks) <= 2**18
)
__all__ = ["PLANS", "NcclPlan", "plan_nccl"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclPlan(Plan):
    """A collective of NCCL on placed ranks.

    Parameters
    ----------
    launch : NcclLaunch
        What the library launches at each size.
    spread : (float, float)
        Factors of the time between which 80 % of the public tables lie; both 1 where that is not known.
    """

    chooses: ClassVar[bool] = True

    launch: NcclLaunch
    spread: tuple[float, float] = (1.0, 1.0)

    def at(self, size: float) -> NcclPlan:
        """Return the plan of one size."""
        if not 0 < size < float("inf"):
            return self
        launch, parameters = self.launch, self.launch.parameters(size)
        key = tuple(parameters.items())
        if key not in self._at:
            schedule = launch.build(self.schedule.n_ranks, **parameters)
            where = "placed", schedule.n_helpers, parameters.get("algorithm")
            placement = once(launch._facts, where, lambda: launch.placed(schedule, parameters))
            costs, framing = launch.costs(size, parameters), launch.framing(parameters)
            job = dataclasses.replace(self.paths.job, schedule=schedule, placement=placement)
            links, before = self.network, 0.0 if costs is None else costs.launch
            spread = (1.0, 1.0) if costs is None else costs.spread
            if (rccl := launch.rccl) is not None:
                protocol = parameters.get("protocol", "simple")
                links, before = priced(self.network, rccl, protocol), rccl.before(protocol)
                job = dataclasses.replace(job, rate_cap=rccl.channel)
                spread = interval_of(RCCL, size)
            paths = FlowPaths(links, job, self.paths.routing, self.paths.seed)
            if costs is not None:
                job = dataclasses.replace(job, rate_cap=costs.rate_cap)
                loops = launch.loops(schedule, parameters, job)
                known = ClosedForm(costs.seconds - costs.launch, costs.reference, framing, loops)
                paths = ClosedFormPaths(costs.network, job, paths.routing, paths.seed, known=known)
            self._at[key] = dataclasses.replace(
                self, schedule=schedule, parameters=parameters, placement=placement, paths=paths, framing=framing,
                before=before, spread=spread,
            )  # fmt: skip
        plan: NcclPlan = self._at[key]
        return plan

    def taken_for(self, setting: NcclSetting, site: Site | None = None) -> NcclPlan:
        """Return the plan where NCCL takes the network for something else.

        Parameters
        ----------
        setting : NcclSetting
            What NCCL takes it for.
        site : Site, optional
            What is known beside that. Default: what the network says.
        """
        launch = dataclasses.replace(self.launch, setting=setting, given_site=site, _facts={})
        return dataclasses.replace(self, launch=launch, _at={})

    @property
    def has_own_costs(self) -> bool:
        """Whether messages have the costs of a library's primitives; they have none where these are not known."""
        return self.launch.rccl is not None if self.launch.setting is None else not self.links_only()

    @property
    def release(self) -> str:
        """Library and release whose rules hold."""
        setting = self.launch.setting
        return "RCCL" if setting is None else "NCCL {}.{}".format(*setting.version[:2])

    def choice_at(self, size: float) -> str:
        """Return algorithm and protocol of a size; empty where neither is chosen."""
        chosen = self.launch.parameters(size)
        return "/".join(str(chosen[key]) for key in ("algorithm", "protocol") if key in chosen)

    def unhindered(self, size: float) -> tuple[float, float, float] | None:
        """Return time, low and high, s, of NCCL's closed form, as if no link were in the way; None where not known.

        The flow engine returns the same to the last bit where it proves that none is; no schedule is built here.
        """
        costs = self.launch.costs(size, self.launch.parameters(size))
        if costs is None:
            return None
        time = costs.seconds - costs.launch + costs.launch  # as the engine adds them
        low, high = costs.spread
        return (time, time * low, time * high) if low < high else (time, time, time)

    def links_only(self) -> list[Remark]:
        """Describe that only links cost time, and why; nothing where they do not, or what is derived says it."""
        launch = self.launch
        if launch.setting is None or not (why := launch.why_links_only(SIZE, launch.parameters(SIZE))):
            return []
        name = self.schedule.name
        return [Remark("links-only", f"{name}: only links cost time, since {why}", needed=True)]

    def chosen(self, sizes: Sequence[float]) -> str:
        """Say of which release the prediction is, and what it takes from which size on; empty if not known."""
        if self.launch.setting is None:
            return ""
        lines: dict[str, str] = {}
        for size in sizes:
            parameters = self.at(size).parameters
            how = "/".join(str(parameters[key]) for key in ("algorithm", "protocol") if key in parameters)
            if how and how != next(reversed(lines.values()), ""):
                lines[format_size(size)] = how
        release = ".".join(map(str, self.launch.setting.version))
        cells = ", ".join(f"{how} from {size}" for size, how in lines.items())
        return f"{self.schedule.name}: predicted for release {release} with {cells}; check first that the log has these"

    def remarks_of_sizes(self, sizes: Iterable[float]) -> list[Remark]:
        """Say where only links cost time, and at which sizes another choice is predicted to be faster."""
        launch, site = self.launch, self.launch.known_site
        given = {key: str(launch.arguments[key]) for key in ("algorithm", "protocol") if key in launch.arguments}
        if site is None or given:
            return self.links_only()
        return self.links_only() + faster_than_chosen(site, launch.operation, sizes)

    def remarks(self, results: Sequence[Result], *, has_framing: bool = False, verbose: bool = False) -> list[Remark]:
        """Return what results leave out, assume or depend on."""
        sizes = [result.size for result in results]
        own = [*self._chosen(sizes), *self.remarks_of_sizes(sizes), *self._fast_cables(results)]
        own += Plan.remarks(self, results, has_framing=has_framing, verbose=verbose)
        return own + of_tables(self.network, self.ranks, results) + self._without_interval(results)

    def _without_interval(self, results: Sequence[Result]) -> list[Remark]:
        """Say of which kind of machines too few tables are public for an interval."""
        if (site := self.launch.known_site) is None or has_islands(site.setting):
            return []
        alone = (self.at(one.size).parameters for one in results if one.interval is None and one.time)
        where = site.setting.n_ranks, site.setting.n_nodes, site.network
        kinds = dict.fromkeys(kind_of(*where, str(taken.get("algorithm", ""))) for taken in alone)
        return no_interval([kind for kind in kinds if (kind, size_class(SIZE)) not in intervals()])

    def _fast_cables(self, results: Sequence[Result]) -> list[Remark]:
        """Say that cables are faster than the machines' NICs: without an effect where these limit none of the times."""
        found = [] if self.launch.setting is None else shown_by_cables(self.launch.setting)
        if not found:
            return []
        limits = {limit.what for result in results if (limit := limit_of(self, result)) is not None}
        if NICS in limits:
            return found
        return [dataclasses.replace(one, effect=0.0 if limits else None) for one in found]

    def _chosen(self, sizes: Sequence[float]) -> list[Remark]:
        """Name what NCCL chooses at the sizes asked for, where the ranges of sizes are too many to be listed."""
        launch = self.launch
        if (
            launch.setting is None
            or launch.operation not in ALLOWED
            or {"algorithm", "protocol"} & launch.arguments.keys()
        ):
            return []
        setting = launch.setting
        if not sizes or len(ranges(setting, launch.operation)) <= MAX_NAMED:
            return []
        found = [(format_size(size), launch.parameters(size)) for size in sizes]
        texts = [f"{taken['algorithm']}/{taken['protocol']} at {size}" for size, taken in found]
        return [Remark("library-choice", f"{self.schedule.name}: NCCL chooses {', '.join(texts)}")]

    def run_of(self, size: float, wish: Wish) -> Run:
        """Return what an engine plays at one size; the closed form is NCCL's own where its costs are known.

        In packets the flags of the protocol are a share of each.
        """
        one = self.at(size)
        flags = None if one.framing is None else one.launch.in_packets(one.framing)
        on_paper = one._on_paper if one.launch.is_known else None
        return dataclasses.replace(Plan.run_of(one, size, wish), in_packets=flags, spread=one.spread, on_paper=on_paper)

    def _on_paper(self, run: Run, wish: Wish) -> Result:
        """Predict a single call by the closed form alone, as nccl-tests measures it.

        Raises
        ------
        InputError
            If the costs of the GPUs' primitives or of the network are not known, or a link alone needs longer.
        """
        if wish.start_jitter or wish.framing is not None:
            raise InputError("NCCL's closed form has neither late starters nor packet headers; use engine flow")
        name, launch, paths, size = self.schedule.name, self.launch, run.paths, run.size
        if not isinstance(paths, ClosedFormPaths):
            raise InputError(f"{name}: {launch.why_links_only(size, self.parameters)}; use engine flow")
        network, known = paths.network, paths.known
        time = known.seconds + self.before
        on_links, on_wire = carried(network, paths.job, paths.proof, size, known.framing)
        needs = on_links / network.bandwidth
        if needs.max(initial=0.0) > time:
            worst = int(needs.argmax())
            raise InputError(
                f"{name}: the closed form does not model the fabric: it gives {time * 1e6:.1f} us, but link "
                f"{network.link_name(worst)} alone needs {needs[worst] * 1e6:.1f} us; use engine flow"
            )
        low, high = self.spread
        return Result(
            name, launch.operation, "closed-form", self.schedule.n_ranks, size, time, time, on_links, on_wire,
            interval=(time * low, time * high) if low < high else None,
        )  # fmt: skip

    def checked(self, result: Result) -> Result:
        """Check a result against cuts; in-switch reduction of NVLink SHARP has smaller ones than rings have."""
        rings, switches = once(self.launch._facts, "floor", lambda: (floor_of(self), floor_of(self, anywhere=True)))
        helpers = 0 < result.size < float("inf") and self.at(result.size).schedule.n_helpers
        (switches if helpers else rings).check(result)
        return result


def plan_nccl(request: CollectiveRequest) -> NcclPlan:
    """Plan what NCCL launches; the plan is kept for the same question again.

    It is not where a file is read, ranks are placed by value, or the collective is the user's own.
    """
    entry, where = request.entry, request.placement
    is_named = isinstance(where, str) and where in RANK_ORDERS
    if not is_named or request.raw.keys() & {*READERS} or COLLECTIVES[entry.name] is not entry:
        return _planned(request)
    key = (
        id(request.network), entry.name, *request.raw.items(), request.n_ranks, where, request.routing, request.seed,
        request.assume_programmable,
    )  # fmt: skip
    _, plan = PLANS.get(key, lambda: (request.network, _planned(request)))
    return dataclasses.replace(plan, _at={}, _bounds={})  # what is found at sizes takes memory, and is not kept


def _planned(asked: CollectiveRequest) -> NcclPlan:
    """Plan what NCCL launches, with what it takes for the array that is usual."""
    raw, decided = split_files(asked.raw)
    more = (word for word in (*READERS, *WORDS) if word not in asked.entry.parameters)
    asked = dataclasses.replace(asked, raw=raw, more=", ".join(more))
    entry, network, parameters, n_ranks = asked.entry, asked.network, asked.parameters, asked.all_ranks
    where = asked.placement
    if not isinstance(where, Placement):
        where = load_placement(where, network, n_ranks, asked.seed)
    launch = nccl_launch(entry.build, entry.metadata["operation"], parameters, network, where, n_ranks, decided)
    parameters |= launch.parameters(parameters.get("n_bytes", entry.parameters["n_bytes"].default))
    schedule = entry.build(n_ranks, **parameters)
    made = PlacedSchedule(schedule, parameters, launch.placed(schedule, parameters), launch.notes)
    return laid_out(made, asked).as_kind(NcclPlan, launch=launch)
