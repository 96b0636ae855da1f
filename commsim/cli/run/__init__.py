"""``commsim run``: predict how long collectives take, in the table of nccl-tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.report.table import given_remarks, print_remarks

from ..flags import Verb
from ..flags.outputs import check_drawable, draw_loads
from .config import AUTO, Config, network_and_options, without_effect
from .operation import assumes_overhead, run_operation
from .predicted import json_row, predict_and_print, predict_with_auto, read_tolerance, run_groups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from commsim.core.network import Network


def run(config: Config) -> None:
    """Predict and print."""
    sizes = config.sizes()
    _check(config)
    if config.jobs is not None:
        from .together import run_jobs

        run_jobs(config)
        return
    is_usual = not config.engine
    config, network, options, notes = network_and_options(config)
    flaps = config.flaps(network)
    if flaps is not None:
        options["flaps"] = flaps
    print_remarks((*notes, *without_effect(config, config.routing or network.routing)))
    more: dict[str, Any] = {}
    if config.group:
        results: list[Any] = run_groups(config, network, sizes, options)
    elif config.operation is not None or config.algorithm is not None:
        results, more = run_operation(config, network, sizes, options)
        if assumes_overhead(config):
            network = _with_assumed(network)
    else:
        results = [r for spec in config.collective for r in _run_one(config, spec, network, sizes, options, is_usual)]
    if config.draw:
        draw_loads(network, results[-1], config.draw)
    more |= {"network": resolved_network(network), "remarks": list(given_remarks())}
    config.write_json([json_row(network, r) for r in results], config.flags("report"), **more)
    if config.osu:
        from commsim.files.whole_files import replacing
        from commsim.formats.measured_text import osu_text

        with replacing(config.osu) as file:
            file.write(osu_text(results).encode())
    if config.report:
        from ..report import report_run

        report_run(config, results, config.report)


def _run_one(
    config: Config, spec: str, network: Network, sizes: list[int], options: dict[str, Any], is_usual: bool
) -> list[Any]:
    from commsim.run import prepare
    from commsim.run.usual import known_engine

    prepared: Any = prepare(spec, network, n_ranks=config.ranks, **config.placing)
    if is_usual:
        engine, why = known_engine(prepared, sizes[0], options["engine"])
        print_remarks([why] if why else [])
        options = options | {"engine": engine}
    if config.engine == AUTO:
        results = predict_with_auto(spec, prepared, sizes, options, config)
    else:
        if config.compressor:
            from commsim.run.compressed import compressed

            prepared = compressed(prepared, config.compressor)
        results = predict_and_print(spec, prepared, sizes, options, **config.shown)
    if config.bound:
        from ..bound import print_distance

        print_distance(prepared, results)
    return results


def _with_assumed(network: Network) -> Network:
    from commsim.run.ranking import with_assumed_overhead

    return with_assumed_overhead(network)


def resolved_network(network: Network) -> dict[str, Any]:
    """Return what a specification has become, with defaults, faults and costs: for the JSON of a prediction."""
    return {
        "name": network.name,
        "n_nodes": network.n_nodes,
        "n_links": network.n_links,
        "routing": network.routing,
        "bandwidth_Bps": _extremes(network.bandwidth),
        "latency_s": _extremes(network.latency),
        "overhead_s": float(network.overhead.max(initial=0.0)),
        "gamma_s_per_B": float(network.gamma.max(initial=0.0)),
        "hardware": network.hardware,
    }


def _extremes(values: NDArray[np.float64]) -> list[float]:
    """Return the smallest and the largest, or nothing of nothing."""
    return [float(values.min()), float(values.max())] if values.size else []


def _check(config: Config) -> None:
    """Refuse, before anything is computed, flags that do not go together, and files that cannot be written."""
    from commsim.run import ENGINES

    if config.draw:
        check_drawable(config.draw)
    if config.report:
        from ..report import check_page

        check_page(config.report)
    if config.engine and config.engine not in (*ENGINES, AUTO):
        raise InputError(f"unknown engine {config.engine!r}; known: {', '.join((*ENGINES, AUTO))}")
    if config.osu:
        from pathlib import Path

        from commsim.files.whole_files import check_writable

        check_writable(Path(config.osu))
        if config.group or config.operation is not None or len(config.collective) > 1:
            raise InputError("--osu is the table of one collective")
    read_tolerance(config)
    if config.synthesized and config.operation is None:
        raise InputError("--synthesized goes with --operation, such as --operation all_reduce")
    if config.compressor and (config.group or config.operation is not None or config.algorithm is not None):
        raise InputError("--compressor goes with --collective alone")
    if config.flap and config.compressor:
        raise InputError("--flap is not modelled with --compressor")
    if config.bound and (config.compressor or config.group or config.operation is not None):
        raise InputError("--bound goes with --collective alone; commsim bound ranks the algorithms of an operation")


COMMANDS = {"run": Verb(Config, run)}
