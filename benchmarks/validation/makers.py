"""Who makes rows: one entry for each family of models. To add one, write its file and its line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from . import (
    closed_form,
    closed_form_bytes,
    closed_form_choices,
    closed_form_rates,
    closed_form_traffic,
    closed_form_workload,
    engines,
    engines_estimates,
    engines_queues,
    engines_searches,
    engines_shared_links,
    engines_slow_solver,
    published_collectives,
    published_ddp,
    published_examples,
    published_omnireduce,
    published_placement,
    published_priorities,
    published_sharing,
    published_switch,
    published_training,
    published_trial,
    published_workload,
)
from .row import Row


@dataclass(frozen=True, slots=True)
class Maker:
    """A family of rows.

    Parameters
    ----------
    name, kind : str
        What is compared, and the kind of all its rows.
    seconds, quick_seconds : float, s
        What it took of one core when last measured, with kernels compiled; and of the quick subset.
    make : callable
        From whether only the quick subset is wanted to its rows.
    """

    name: str
    kind: str
    seconds: float
    quick_seconds: float
    make: Callable[[bool], Iterable[Row]]


MAKERS = (
    Maker("collectives where their closed forms hold", "closed_form", 2, 1, closed_form.rows),
    Maker("choices of collectives", "closed_form", 3, 1, closed_form_choices.rows),
    Maker("bytes of servers and of sparse data", "closed_form", 4, 1, closed_form_bytes.rows),
    Maker("rates, pools and losses in the network", "closed_form", 3, 1, closed_form_rates.rows),
    Maker("training iterations, played", "closed_form", 1, 0.5, closed_form_workload.rows),
    Maker("traffic of training", "closed_form", 1, 0.5, closed_form_traffic.rows),
    Maker("in-network aggregation", "published", 3, 1, published_switch.rows),
    Maker("worked examples", "published", 1, 0.5, published_examples.rows),
    Maker("collectives and parameter servers", "published", 2, 1, published_collectives.rows),
    Maker("OmniReduce", "published", 30, 0.5, published_omnireduce.rows),
    Maker("a trial of the testbed", "published", 1, 0.5, published_trial.rows),
    Maker("training iterations and jobs on a link", "published", 1, 0.5, published_workload.rows),
    Maker("training at scale", "published", 0.5, 0.1, published_training.rows),
    Maker("PyTorch DDP", "published", 0.5, 0.1, published_ddp.rows),
    Maker("CASSINI's scores and shifts", "published", 0.5, 0.5, published_placement.rows),
    Maker("jobs that share links", "published", 1.5, 0.1, published_sharing.rows),
    Maker("priorities and groups of jobs", "published", 0.5, 0.1, published_priorities.rows),
    Maker("engines on the same plans", "engines", 60, 1, engines.rows),
    Maker("the flow engine against the reference solver", "engines", 2, 0.5, engines_slow_solver.rows),
    Maker("jobs on shared links", "engines", 1, 0.1, engines_shared_links.rows),
    Maker("quick estimates of contention", "engines", 0.5, 0.1, engines_estimates.rows),
    Maker("searches against brute force", "engines", 0.5, 0.1, engines_searches.rows),
    Maker("queues", "engines", 0.5, 0.2, engines_queues.rows),
)
