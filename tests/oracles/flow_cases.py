"""Random small cases for the flow engine: networks, legal schedules, jobs; drawn by hypothesis from one seed."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from commsim.core.network import Network, kinds, node_names
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.core.schedule import INPUT, SCRATCH, Schedule
from commsim.engine.flow_job import FlowJob

Random = np.random.Generator


@dataclass(frozen=True)
class Case:
    """All inputs of one simulation."""

    network: Network
    jobs: tuple[FlowJob, ...]
    sizes: tuple[float, ...]
    starts: tuple[float, ...]
    routing: str
    seed: int


def random_network(rng: Random, n_hosts: int, n_switches: int, costs: bool) -> Network:
    """Hosts on a random connected graph of switches, some cables doubled; every direction has a speed of its own."""
    host = np.arange(n_hosts)
    ends = [(h, n_hosts + int(rng.integers(n_switches))) for h in host]
    ends += [(n_hosts + s, n_hosts + int(rng.integers(s))) for s in range(1, n_switches)]
    ends += [tuple(map(int, rng.choice(n_hosts + n_switches, 2, replace=False))) for _ in range(rng.integers(4))]
    ends += [ends[int(rng.integers(len(ends)))] for _ in range(rng.integers(3))]
    a, b = np.array(ends).T
    n_nodes, n_links = n_hosts + n_switches, 2 * len(ends)

    def cost(scale: float, n: int) -> np.ndarray:
        return np.where(rng.random(n) < 0.5, rng.uniform(0, scale, n), 0.0) if costs else np.zeros(n)

    return Network(
        "random", node_names(h=n_hosts, switch=n_switches), kinds(n_hosts, n_switches),
        np.concatenate((a, b)), np.concatenate((b, a)),
        rng.choice([1.0, 2.0, rng.uniform(0.5, 4)], n_links), cost(0.5, n_links),
        aggregates=np.ones(n_nodes, bool), overhead=cost(0.3, n_nodes), recv_overhead=cost(0.3, n_nodes),
        message_engines=1 + (rng.random(n_nodes) < 0.2),
        gamma=cost(1.0, n_nodes),
    )  # fmt: skip


def random_schedule(rng: Random, n_ranks: int, n_helpers: int, n_hops: int, *, fences: bool = True) -> Schedule:
    """Random hops of copies and reductions of one or two chunks; no hop overwrites a chunk twice."""
    n_chunks = int(rng.integers(2, 5))
    p = Program(n_ranks, n_chunks, n_helpers=n_helpers, n_scratch=n_chunks)
    n = n_ranks + n_helpers
    for _ in range(n_hops):
        write = p.reduce if rng.random() < 0.5 else p.copy
        rows: list[tuple[int, ...]] = []
        written: set[tuple[int, int]] = set()
        buffers = rng.choice([INPUT, SCRATCH], 2)
        for _ in range(rng.integers(1, 5)):
            src, dst = (int(x) for x in rng.choice(n, 2, replace=False))
            count = int(rng.integers(1, 3))
            src_chunk, dst_chunk = (int(x) for x in rng.integers(0, n_chunks - count + 1, 2))
            target = {(dst, dst_chunk + k) for k in range(count)}
            if write == p.copy and target & written:
                continue
            written |= target
            rows.append((src, dst, src_chunk, dst_chunk, count, int(rng.integers(2))))
        src_, dst_, src_chunk_, dst_chunk_, count_, channel = np.array(rows).T
        write(
            src=src_, dst=dst_, src_chunk=src_chunk_, dst_chunk=dst_chunk_, count=count_, channel=channel,
            src_buffer=int(buffers[0]), dst_buffer=int(buffers[1]),
        )  # fmt: skip
        if fences and rng.random() < 0.2:
            p.fence()
    return p.build()


def random_job(rng: Random, network: Network, n_hops: int, plain: bool) -> FlowJob:
    """Place a random schedule; `plain` jobs have unit weight, no priority and no cap."""
    n_hosts = len(network.hosts)
    n_ranks = int(rng.integers(2, n_hosts + 1))
    n_helpers = int(rng.integers(2))
    nodes = [*rng.choice(network.hosts, n_ranks, replace=False), *rng.integers(0, network.n_nodes, n_helpers)]
    schedule, placement = random_schedule(rng, n_ranks, n_helpers, n_hops), Placement(nodes)
    if plain:
        return FlowJob(schedule, placement)
    cap = float(rng.uniform(0.1, 2)) if rng.random() < 0.3 else float("inf")
    return FlowJob(schedule, placement, float(rng.choice([0.25, 1, 1, 3])), int(rng.integers(2)), cap)


@st.composite
def cases(draw: st.DrawFn, *, plain: bool = False, routings: tuple[str, ...] = ("ecmp", "shortest", "spray")) -> Case:
    """A network, one to three jobs on it with sizes, and when each participant starts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    network = random_network(rng, draw(st.integers(2, 6)), draw(st.integers(1, 4)), draw(st.booleans()))
    n_hops = draw(st.integers(1, 4))
    jobs = tuple(random_job(rng, network, n_hops, plain) for _ in range(draw(st.integers(1, 3))))
    late = draw(st.sampled_from([0.0, 0.5, 5.0]))  # 5 s: later than much of what they wait for
    starts = rng.uniform(0, 1, sum(j.schedule.n_participants for j in jobs)) * late
    sizes = rng.choice([1.0, 2.0, rng.uniform(0.5, 3)], len(jobs))
    if len({job.priority for job in jobs}) > 1:
        # Strict priorities are discontinuous where a message would end just when an earlier class takes its link: a
        # byte more, and it waits for that whole class. There rounding decides, so sizes must not meet exactly.
        sizes = sizes * rng.uniform(0.9, 1.1, len(jobs))
    return Case(network, jobs, tuple(sizes), tuple(starts), draw(st.sampled_from(routings)), draw(st.integers(0, 9)))
