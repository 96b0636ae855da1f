"""commsim: one description of a collective, run on paper, in simulated time, and for real.

>>> import commsim as cs
>>> network = cs.load_network("leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8,bandwidth=100Gbps")
>>> cs.predict("ring_all_reduce", network, "64MiB").time  # doctest: +SKIP

Names are resolved when they are first used, so that importing commsim costs milliseconds and compiles nothing.
"""

from __future__ import annotations

from ._siblings import FINDER

TYPE_CHECKING = False  # nothing else is imported: `commsim` catches Ctrl-C only once this module is there
if TYPE_CHECKING:
    from typing import Any

    from collectives import COLLECTIVES as COLLECTIVES
    from topologies import TOPOLOGIES as TOPOLOGIES

    from .api import NetworkBuilder as NetworkBuilder
    from .api import Predicted as Predicted
    from .api import from_networkx as from_networkx
    from .api import predict as predict
    from .api import scenario_of as scenario_of
    from .api import solve as solve
    from .api import to_networkx as to_networkx
    from .core.checking.check import check as check
    from .core.cost import Framing as Framing
    from .core.cost import LogGP as LogGP
    from .core.errors import BackendError as BackendError
    from .core.errors import CommsimError as CommsimError
    from .core.errors import InputError as InputError
    from .core.errors import PhysicsError as PhysicsError
    from .core.errors import RoutingError as RoutingError
    from .core.errors import ScheduleError as ScheduleError
    from .core.files.result_file import read_result as read_result
    from .core.files.schedule_file import read_schedule as read_schedule
    from .core.files.store import read_network as read_network
    from .core.files.store import save as save
    from .core.network import Network as Network
    from .core.pinned_routes import PinnedRoutes as PinnedRoutes
    from .core.placement import Placement as Placement
    from .core.program import Program as Program
    from .core.result import Result as Result
    from .core.result import mean_busbw as mean_busbw
    from .core.schedule import Schedule as Schedule
    from .core.spec import OwnFile as OwnFile
    from .core.units import parse_bandwidth as parse_bandwidth
    from .core.units import parse_size as parse_size
    from .core.units import parse_time as parse_time
    from .diagnosis.check_log import LogCheck as LogCheck
    from .diagnosis.check_log import check_log as check_log
    from .diagnosis.expectation import Expectation as Expectation
    from .diagnosis.expectation import expect as expect
    from .emulation.emulate import Emulation as Emulation
    from .emulation.emulate import emulate as emulate
    from .estimates import Estimate as Estimate
    from .estimates import estimate as estimate
    from .formats.testing import fake_nccl_tests as fake_nccl_tests
    from .formats.testing import fake_osu as fake_osu
    from .networks import load_network as load_network
    from .networks import load_placement as load_placement
    from .networks import place as place
    from .networks import prepare as prepare
    from .networks import read_placement as read_placement
    from .networks import with_faults as with_faults
    from .pages.plots.own_charts import bar_chart as bar_chart
    from .pages.plots.own_charts import line_chart as line_chart
    from .placement.cluster import read_cluster as read_cluster
    from .placement.evaluation import evaluate as evaluate
    from .placement.moves import rank_moves as rank_moves
    from .placement.place import place_jobs as place_jobs
    from .placement.place import rank_placements as rank_placements
    from .placement.starts.link_scores import score_link as score_link
    from .questions import advise_for as advise_for
    from .questions import cheapest_topologies as cheapest_topologies
    from .questions import compare_with as compare_with
    from .questions import write_report as write_report
    from .ranking.optimum import lower_bound as lower_bound
    from .ranking.optimum import over_bound as over_bound
    from .ranking.optimum import rank as rank
    from .ranking.optimum import synthesize as synthesize
    from .real.comparison.comparison import Comparison as Comparison
    from .sparse.compressors import compressor_of as compressor_of
    from .sparse.compressors.message import CompressedRank as CompressedRank
    from .sparse.compressors.message import compressed_sum as compressed_sum
    from .sweep.run_sweep import run_sweep as run_sweep
    from .training.sharing.periodic import read_jobs as read_jobs
    from .training.steps.ask import training_step as training_step
    from .version import __version__ as __version__

_MODULES = {
    "collectives": ("COLLECTIVES",),
    "topologies": ("TOPOLOGIES",),
    "commsim.core.checking.check": ("check",),
    "commsim.core.cost": ("LogGP", "Framing"),
    "commsim.core.errors": (
        "BackendError", "CommsimError", "InputError", "PhysicsError", "RoutingError", "ScheduleError",
    ),
    "commsim.core.network": ("Network",),
    "commsim.core.pinned_routes": ("PinnedRoutes",),
    "commsim.core.placement": ("Placement",),
    "commsim.core.program": ("Program",),
    "commsim.core.result": ("Result", "mean_busbw"),
    "commsim.core.schedule": ("Schedule",),
    "commsim.core.spec": ("OwnFile",),
    "commsim.estimates": ("Estimate", "estimate"),
    "commsim.core.files.result_file": ("read_result",),
    "commsim.core.files.schedule_file": ("read_schedule",),
    "commsim.core.files.store": ("read_network", "save"),
    "commsim.core.units": ("parse_bandwidth", "parse_size", "parse_time"),
    "commsim.pages.plots.own_charts": ("bar_chart", "line_chart"),
    "commsim.placement.cluster": ("read_cluster",),
    "commsim.placement.evaluation": ("evaluate",),
    "commsim.placement.moves": ("rank_moves",),
    "commsim.placement.place": ("place_jobs", "rank_placements",),
    "commsim.placement.starts.link_scores": ("score_link",),
    "commsim.api": (
        "NetworkBuilder", "Predicted", "from_networkx", "predict", "scenario_of", "solve", "to_networkx",
    ),
    "commsim.real.comparison.comparison": ("Comparison",),
    "commsim.diagnosis.check_log": ("LogCheck", "check_log"),
    "commsim.diagnosis.expectation": ("Expectation", "expect"),
    "commsim.emulation.emulate": ("Emulation", "emulate"),
    "commsim.networks": (
        "load_network", "load_placement", "place", "prepare", "read_placement", "with_faults",
    ),
    "commsim.ranking.optimum": ("lower_bound", "over_bound", "rank", "synthesize"),
    "commsim.questions": (
        "advise_for", "cheapest_topologies", "compare_with", "write_report",
    ),
    "commsim.sweep.run_sweep": ("run_sweep",),
    "commsim.sparse.compressors": ("compressor_of",),
    "commsim.sparse.compressors.message": ("CompressedRank", "compressed_sum"),
    "commsim.formats.testing": ("fake_nccl_tests", "fake_osu"),
    "commsim.training.sharing.periodic": ("read_jobs",),
    "commsim.training.steps.ask": ("training_step",),
    "commsim.version": ("__version__",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'commsim' has no attribute {name!r}")
    import importlib

    FINDER.take_over()
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
