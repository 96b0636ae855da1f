"""Sprayed permutations and incasts on the leaf-spine of the Ultra Ethernet simulator's published tables.

``python -m benchmarks.accuracy.fabrics permutation --transport nscc --paths 128 --size 8MB --json FILE`` plays one row;
``... all --published DIRECTORY --json FILE`` plays the published grid beside its figures (`permutations.csv`,
`incasts.csv`), and goes on where a file ends. The network is theirs: 64 hosts a leaf, 64, 16 or 8 uplinks for 1:1, 4:1
and 8:1, 1 us a hop; queues of 100 packets at 400 Gbit/s, marks from 25 to 75, windows of 150, as many more as the rate.
A "failed" uplink is a spine whose links to and from the leaves have a quarter of rate and queue, as in their simulator.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.units import parse_bandwidth, parse_size, parse_time
from commsim.packets.codes import RCCC
from commsim.packets.transports.spraying import BALANCINGS, Spraying
from commsim.packets.transports.transports import TRANSPORTS
from commsim.routing.routing import find_routes
from commsim.traffic.host_messages import run_messages
from commsim.traffic.patterns import HostMessages, incast, permutation
from topologies.leaf_spine import leaf_spine

PER_LEAF, HOP, MTU = 64, 1e-6, 4160
FAILED = 0.25  # of the rate that is left to a link that "failed"
REFERENCE = 50e9  # bytes/s: the rate at which a queue has 100 packets
LARGEST = 16_000_000  # bytes that all rows are played to; two rows go on
LONG = {("rccc", "1", "0", "128"), ("nscc", "1", "0", "128")}


def fabric(hosts: int, rate: float, oversubscription: int, failed: int) -> Network:
    """Build the leaf-spine.

    Parameters
    ----------
    hosts : int
        In all; 64 a leaf, and fewer when there are fewer.
    rate : float, bytes/s
        Of every link.
    oversubscription, failed : int
        Hosts of a leaf over its uplinks, and uplinks whose way down is slow.
    """
    per_leaf = min(PER_LEAF, hosts // 2)
    if hosts % per_leaf or per_leaf % oversubscription or failed > per_leaf // oversubscription:
        raise InputError(
            f"--hosts are a multiple of {per_leaf}, which --oversubscription divides and --failed-uplinks "
            f"do not exceed, got {hosts}, {oversubscription} and {failed}"
        )
    network = leaf_spine(hosts // per_leaf, per_leaf // oversubscription, per_leaf, bandwidth=rate, latency=HOP)
    first = hosts + hosts // per_leaf
    ends = np.stack((network.src, network.dst))
    slow = ((ends >= first) & (ends < first + failed)).any(axis=0)
    room = np.where(slow, FAILED * queue_of(rate), np.inf)
    return dataclasses.replace(network, bandwidth=np.where(slow, FAILED * rate, network.bandwidth), buffer=room)


def queue_of(rate: float) -> float:
    """Return the bytes that a queue of the tables holds."""
    return 100 * rate / REFERENCE * MTU


def play(args: argparse.Namespace, messages: HostMessages) -> dict[str, Any]:
    """Play one row and time it."""
    packets = queue_of(args.rate) / MTU
    # the tables' marks are whole packets
    marks = float(int(0.25 * packets) * MTU), float(int(0.75 * packets) * MTU)
    spraying = Spraying(
        args.transport, args.balancing, args.paths, queue=packets * MTU, ecn=marks, window=1.5 * packets * MTU,
        seed=args.seed,
    )  # fmt: skip
    network = fabric(args.hosts, args.rate, args.oversubscription, args.failed_uplinks)
    begin = time.process_time()
    run = run_messages(network, messages, spraying)
    spent = time.process_time() - begin
    end = messages.start + run.finished
    return {
        "tail_fct_s": float(end.max()), "mean_fct_s": float(run.finished.mean()),
        "first_fct_s": float(run.finished.min()), "cpu_s": round(spent, 3),
        "rss_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "hosts": args.hosts,
        "rate_Gbps": args.rate * 8 / 1e9, "transport": args.transport, "balancing": args.balancing,
        "oversubscription": args.oversubscription, "failed_uplinks": args.failed_uplinks, "paths": args.paths,
        "size_B": int(args.size), "seed": args.seed, "bound_s": bound(network, messages), **run.rules, **run.counters,
    }  # fmt: skip


def flow_time(network: Network, messages: HostMessages, args: argparse.Namespace) -> float:
    """Predict the last completion by the flow model of finite entropies: what the fullest link carries, in seconds."""
    transport = TRANSPORTS[args.transport]
    by_credit = transport.kind == RCCC
    routing = f"spray:entropies={args.paths}{':trims' if by_credit else ''}"
    routes = find_routes(network, messages.src, messages.dst, routing=routing, seed=args.seed)
    wire = messages.nbytes + -(-messages.nbytes // (MTU - 64)) * 64
    of_route = np.repeat(np.arange(len(wire)), np.diff(routes.first))
    seconds = routes.share * wire[of_route] / network.bandwidth[routes.link]
    share = transport.share if by_credit else 1.0
    return float(np.bincount(routes.link, seconds).max() / share + 2 * routes.latency.max())


def bound(network: Network, messages: HostMessages) -> float:
    """Bound the last completion from below: what the busiest host sends or gets over its rate, and the way there."""
    wire = messages.nbytes + -(-messages.nbytes // (MTU - 64)) * 64
    most = max(np.bincount(messages.src, wire).max(), np.bincount(messages.dst, wire).max())
    return float(most / network.bandwidth[0] + 4 * HOP)


def published(args: argparse.Namespace) -> None:
    """Play the published grid, row by row, into a file that is read again when the run is continued."""
    rows = json.loads(args.json.read_text())["rows"] if args.json.exists() else []
    known = {tuple(row["case"]) for row in rows}
    for case, wanted in published_cases(args.published, args.largest):
        if case in known:
            continue
        row = play_case(case, args.hosts, args.seed, args.balancing)
        near = min(wanted, key=lambda tail: abs(tail - row["tail_fct_s"] * 1e6))
        error = row["tail_fct_s"] * 1e6 / near - 1
        rows.append({"case": case, **row, "published_us": wanted, "error": error})
        print(
            f"{' '.join(case):60s} {row['tail_fct_s'] * 1e6:10.2f} us, published {near:10.2f}: {error:+.1%}", flush=True
        )
        args.json.write_text(json.dumps({"rows": rows}, indent=1))
    for transport in ("rccc", "nscc"):
        errors = [abs(row["error"]) for row in rows if row["transport"] == transport]
        below = sum(row["tail_fct_s"] < row["bound_s"] for row in rows)
        if errors:
            middle, most = np.quantile(errors, (0.5, 0.9))
            print(
                f"{transport}: {len(errors)} rows, error median {middle:.1%}, p90 {most:.1%}; {below} below the bound"
            )


def play_case(case: tuple[str, ...], hosts: int, seed: int = 1, balancing: str = "mixed") -> dict[str, Any]:
    """Play a case of :func:`published_cases` on a network of `hosts`."""
    pattern, rate, transport, over, failed, size, paths, senders, spread = case
    one = argparse.Namespace(
        transport=transport, oversubscription=int(over), rate=float(rate) * 1e9 / 8, failed_uplinks=int(failed),
        size=int(size), paths=int(paths), hosts=hosts, seed=seed, balancing=balancing,
    )  # fmt: skip
    return play(one, _pattern(pattern, one, int(senders), float(spread) * 1e-6))


def published_cases(directory: Path, largest: float) -> list[tuple[tuple[str, ...], list[float]]]:
    """List the grid, the short ones first, with the figures of each case: NSCC has one or two."""
    found: dict[tuple[str, ...], list[float]] = {}
    for row in csv.DictReader((directory / "permutations.csv").open()):
        kind = (row["transport"], row["oversubscription"], row["failed_uplinks"], row["paths"])
        if int(row["size_B"]) <= largest or (
            largest >= LARGEST and kind in LONG and row["size_B"] in ("64000000", "100000000")
        ):
            case = ("permutation", row["rate_Gbps"], *kind[:3], row["size_B"], row["paths"], "0", "0")
            found.setdefault(case, []).append(float(row["tail_fct_us"]))
    for row in csv.DictReader((directory / "incasts.csv").open()):
        if int(row["size_B"]) * int(row["senders"]) <= 64 * largest:
            case = ("incast", row["rate_Gbps"], row["transport"], "1", "0", row["size_B"], "128", row["senders"],
                    row["start_spread_us"])  # fmt: skip
            found.setdefault(case, []).append(float(row["tail_fct_us"]))
    return sorted(found.items(), key=lambda item: int(item[0][5]) * (int(item[0][7]) or 8192))


def _pattern(name: str, args: argparse.Namespace, senders: int, spread: float) -> HostMessages:
    if name == "permutation":
        return permutation(args.hosts, int(args.size), seed=args.seed)
    return incast(args.hosts, int(args.size), senders=senders, spread=spread, seed=args.seed)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pattern", choices=("permutation", "incast", "all"))
    parser.add_argument("--rate", type=lambda text: parse_bandwidth(text, "--rate"), default=REFERENCE)
    parser.add_argument("--oversubscription", type=int, choices=(1, 2, 4, 8), default=1)
    parser.add_argument("--transport", choices=list(TRANSPORTS), default="nscc")
    parser.add_argument("--balancing", choices=list(BALANCINGS), default="mixed")
    parser.add_argument("--paths", type=int, default=128)
    parser.add_argument("--size", type=lambda text: int(parse_size(text, "--size")), default=1_000_000)
    parser.add_argument("--hosts", type=int, default=8192)
    parser.add_argument("--failed-uplinks", type=int, default=0)
    parser.add_argument("--senders", type=int, default=32, help="of an incast")
    parser.add_argument("--spread", type=lambda text: parse_time(text, "--spread"), default=0.0, help="of their starts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flows", action="store_true", help="also the flow model of finite entropies: flow_tail_s")
    parser.add_argument("--published", type=Path, help="directory of the published tables, for all")
    parser.add_argument("--largest", type=lambda text: parse_size(text, "--largest"), default=LARGEST, help="of all")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    try:
        if args.pattern == "all":
            if args.published is None or args.json is None:
                raise InputError("all needs --published and --json")
            begin = time.perf_counter()
            published(args)
            print(f"{time.perf_counter() - begin:.0f} s")
            return
        messages = _pattern(args.pattern, args, args.senders, args.spread)
        row = play(args, messages)
        if args.flows:
            network = fabric(args.hosts, args.rate, args.oversubscription, args.failed_uplinks)
            row["flow_tail_s"] = flow_time(network, messages, args)
    except (InputError, OSError, ValueError) as error:
        print(f"fabrics: error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    print(json.dumps(row, indent=1))
    if args.json is not None:
        args.json.write_text(json.dumps({"rows": [row]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
