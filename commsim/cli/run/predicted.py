"""Tables of predictions in the columns of nccl-tests: of one collective, of groups at once, of engines by size."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.report.table import print_remarks, print_table, progress

from ..flags.faults import flap_remarks
from .config import AUTO, DATATYPES

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.run import Prepared

    from .config import Config

COLUMNS = [
    "size(B)", "count", "type", "redop", "root", "time(us)", "algbw(GB/s)", "busbw(GB/s)", "#wrong",
    "wire(B)", "max_link(B)", "max_link(GB/s)", "busiest_link",
]  # fmt: skip

INTERVAL = ["low(us)", "high(us)"]

# What a narrow terminal leaves out, first of all what nccl-tests prints and a prediction does not vary.
LEAST = ["type", "redop", "root", "#wrong", "count", "wire(B)", "max_link(B)", "max_link(GB/s)", "busiest_link",
         "algbw(GB/s)"]  # fmt: skip

# What ``-v`` says of the flow engine's ways to compute.
METHODS = {
    "recurrence": "a recurrence, since messages are alone on their links or share them in step",
    "simultaneous": "one allocation of rates, since all messages start together",
    "symmetric": "one transfer of each class of equal transfers",
    "streamed": "event by event, with one state per connection instead of per message",
    "events": "event by event",
}


def predict_and_print(
    spec: str,
    prepared: Any,
    sizes: list[int],
    options: dict[str, Any],
    *,
    verbose: bool = False,
    datatype: str = "float",
) -> list[Any]:
    """Predict all sizes of one prepared collective, and print them as nccl-tests does.

    Parameters
    ----------
    spec : str
        The collective, as the user named it.
    prepared : Prepared
        It, placed on the network.
    sizes : list of int, bytes
        In the order of the rows.
    options : dict
        What ``Prepared.predict`` takes.
    verbose : bool
        Whether to print how the flow engine computed.
    datatype : str
        Of the elements that are counted, one of ``DATATYPES``.

    Returns
    -------
    list of Result
        One per size.
    """
    operation = OPERATIONS.get(prepared.schedule.operation)
    if operation is not None and operation.signals:
        print(f"# -b, -e, -f: no effect, a {prepared.schedule.operation} carries no bytes")
        sizes = [0]
    if prepared.data is not None and prepared.data.size is not None and sizes != [prepared.data.size]:
        print("# -b, -e, -f: no effect, the size is that of the gradients")
        sizes = [prepared.data.size]
    results = [prepared.predict(size, **options) for size in progress(sizes, spec)]
    print_remarks(prepared.notes)
    title = f"{spec} on {prepared.network.name}, {prepared.schedule.n_ranks} ranks, engine {options['engine']}"
    rows = [table_row(prepared.network, prepared.schedule, r, datatype) for r in results]
    if any(r.interval is not None for r in results):
        rows = [[*row, *interval_cells(r)] for row, r in zip(rows, results, strict=True)]
    print_table([*COLUMNS, *INTERVAL][: len(rows[0])], rows, title, LEAST)
    rates = [r.busbw for r in results if r.time > 0 and operation is not None]  # 'custom' has no factor
    print(f"# Avg bus bandwidth    : {sum(rates) / max(1, len(rates)) / 1e9:.4g}")
    for method in sorted({r.method for r in results} & METHODS.keys()) if verbose else ():
        print(f"# flow engine: {METHODS[method]}")
    from commsim.run.remarks import remarks_of_results

    framed = options["framing"] is not None
    said = remarks_of_results(prepared, results, has_framing=framed, verbose=verbose)
    print_remarks((*said, *flap_remarks(results)))
    return results


def interval_cells(r: Any) -> list[str]:
    """Cells of the interval around a prediction, under INTERVAL; dashes where nothing is known of it."""
    return ["-", "-"] if r.interval is None else [f"{t * 1e6:.2f}" for t in r.interval]


def table_row(network: Any, schedule: Any, r: Any, datatype: str = "float") -> list[str]:
    """Cells of one result, under COLUMNS.

    Parameters
    ----------
    network : Network
        On which it was predicted.
    schedule : Schedule
        Of which.
    r : Result
        The prediction.
    datatype : str
        Of the elements that are counted, one of ``DATATYPES``.
    """
    operation = OPERATIONS.get(r.operation)
    link, load, rate = _busiest(network, r)
    return [
        f"{r.size:.0f}",
        f"{r.size / DATATYPES[datatype]:.0f}",
        datatype,
        "sum" if operation and operation.reduces else "none",
        str(schedule.root if operation and operation.has_root else -1),
        f"{r.time * 1e6:.2f}",
        f"{r.algbw / 1e9:.3f}",
        f"{r.busbw / 1e9:.3f}" if operation else "N/A",
        "N/A",
        f"{r.bytes_on_wire:.0f}",
        f"{load:.0f}",
        f"{rate / 1e9:.3f}",
        link or "-",
    ]


def json_row(network: Any, r: Any) -> dict[str, Any]:
    """Return the JSON row of one result: what the table shows, and how it was computed.

    Parameters
    ----------
    network : Network
        On which it was predicted.
    r : Result
        The prediction.
    """
    link, load, rate = _busiest(network, r)
    busiest = None if link is None else {"name": link, "bytes": load, "Bps": rate}
    row: dict[str, Any] = r.row()
    return row | {"busiest_link": busiest, "method": r.method or None}


def _busiest(network: Any, r: Any) -> tuple[str | None, float, float]:
    """Return the link that needs the longest for its bytes: its name, its bytes, and its mean rate in bytes/s."""
    if not r.link_bytes.any():
        return None, 0.0, 0.0
    busiest = int((r.link_bytes / network.bandwidth).argmax())
    load = float(r.link_bytes[busiest])
    return network.link_name(busiest), load, load / r.time if r.time else 0.0


def read_tolerance(config: Config) -> float | None:
    """Return the tolerance of --engine auto; None for other engines.

    Raises
    ------
    InputError
        If auto has no tolerance, another engine has one, or a flag is given for which no errors are known.
    """
    if config.engine != AUTO:
        if config.tolerance is not None:
            raise InputError(f"--tolerance goes with --engine auto, got --engine {config.engine or 'flow'}")
        return None
    if config.tolerance is None:
        raise InputError("--engine auto needs --tolerance, such as --tolerance 10%")
    flags = {
        "--group": config.group, "--operation": config.operation, "--algorithm": config.algorithm,
        "--compressor": config.compressor, "--start-jitter": config.start_jitter, "--header": config.header,
    }  # fmt: skip
    for flag, value in flags.items():
        if value:
            raise InputError(f"{flag}: no errors are known with it; choose an engine by hand, such as --engine flow")
    return _part(config.tolerance)


def predict_with_auto(
    spec: str, prepared: Prepared, sizes: list[int], options: dict[str, Any], config: Config
) -> list[Any]:
    """Choose an engine for every size, print which and why, and predict.

    Parameters
    ----------
    spec : str
        The collective, as the user named it.
    prepared : Prepared
        It, placed on the network.
    sizes : list of int, bytes
        In ascending order.
    options : dict
        What ``Prepared.predict`` takes.
    config : Config
        Its ``--tolerance`` and ``--transport``.

    Returns
    -------
    list of Result
        One per size.
    """
    from commsim.run.auto import choose

    tolerance, transport = read_tolerance(config) or 0.0, config.transport or "window"
    choices = [choose(prepared, size, tolerance, transport) for size in sizes]
    print_remarks(line for choice in choices for line in choice.lines)
    results: list[Any] = []
    for engine, some in itertools.groupby(choices, key=lambda choice: choice.engine):
        of_engine = [int(choice.size) for choice in some]
        chosen = options | {"engine": engine}
        if engine == "packet":
            from commsim.engine.packet.transport import TRANSPORTS

            chosen["transport"] = TRANSPORTS[transport]()
        results += predict_and_print(spec, prepared, of_engine, chosen, **config.shown)
    return results


def _part(text: str) -> float:
    number, percent = (text[:-1], 100.0) if text.endswith("%") else (text, 1.0)
    try:
        return float(number) / percent
    except ValueError:
        raise InputError(f"--tolerance must be a part such as 10% or 0.1, got {text!r}") from None


def read_group(text: str) -> list[int]:
    """Read ``0,2,4,6``.

    Raises
    ------
    InputError
        If it is no list of whole numbers.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise InputError(f"--group must be ranks such as 0,2,4,6, got {text!r}")
    return [int(part) for part in parts]


def run_groups(config: Config, network: Network, sizes: list[int], options: Mapping[str, Any]) -> list[Result]:
    """Predict every size of every collective on all groups at once, and print a row per group.

    Parameters
    ----------
    config : Config
        Its ``--group`` and ``--collective``.
    network : Network
        Which all groups share.
    sizes : list of int, bytes
        Of each group's collective.
    options : mapping
        Of a prediction.

    Raises
    ------
    InputError
        If a flag is given that groups do not take.
    """
    from commsim.run.process_groups import prepare_groups

    groups = [read_group(text) for text in config.group]
    if config.operation is not None or config.algorithm is not None:
        raise InputError("--group goes with --collective, not with --operation or --algorithm")
    if config.start_jitter:
        raise InputError("--start-jitter is not modelled for groups")
    chosen = {name: options[name] for name in ("framing", "transport", "fabric", "flaps") if name in options}
    results: list[Result] = []
    for spec in config.collective:
        prepared = prepare_groups(spec, network, groups, n_ranks=config.ranks, **config.placing)
        rows = []
        for size in progress(sizes, spec):
            of_groups = prepared.predict(size, engine=config.engine, **chosen)
            results += of_groups
            for text, group, result in zip(config.group, prepared.groups, of_groups, strict=True):
                rows.append([text, *table_row(network, group.schedule, result, config.datatype)])
        print_remarks(dict.fromkeys(note for group in prepared.groups for note in group.notes))
        print_remarks(dict.fromkeys(flap_remarks(results)))
        title = f"{spec} on {network.name}, {len(groups)} groups at once, engine {config.engine}"
        print_table(["group", *COLUMNS], rows, title, LEAST)
    return results
