"""Traces of processors: gradients that are reduced on gloo's thread, and a flight recorder that notes calls late."""

import json

import pytest

from commsim.profiles.read_ranks import traced_graph
from commsim.training.cost_by_simulation import network_costs
from commsim.training.exchanges import ExchangesOnLinks
from commsim.training.task_graph import simulate_graph

MS = 1e-3
BASE = 1_790_857_026_000_000_000  # ns
N_STEPS, LENGTH = 4, 0.1
# In each step: operators of 1 ms, 9 ms apart since the processor does something else, until 50 ms, and two buckets
# issued at 20 and 49 ms. Gloo's thread does the first until 40 ms, the second until 80 ms, then the optimiser.
ISSUED, ENDS, UPDATE = (0.020, 0.049), (0.040, 0.080), 0.081
ELEMENTS = 250_000


def write(folder, rank, late=0.0, n_before=2):
    """Write the trace of a rank, and its flight record, whose last call of the last whole step is noted `late`."""
    events, entries = [], []

    def event(cat, name, begin, length, thread, **args):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": rank, "tid": thread, "ts": begin * 1e6,
                       "dur": length * 1e6, "args": args})  # fmt: skip

    def note(at):
        entries.append({
            "record_id": len(entries), "pg_id": 0, "process_group": ["0", "default_pg"], "state": "scheduled",
            "collective_seq_id": len(entries), "is_p2p": False, "profiling_name": "gloo:all_reduce", "retired": True,
            "input_sizes": [[ELEMENTS]], "output_sizes": [[ELEMENTS]], "input_dtypes": ["Float"],
            "output_dtypes": ["Float"], "time_created_ns": BASE + round(at * 1e9), "time_discovered_started_ns": 0,
            "time_discovered_completed_ns": 0,
        })  # fmt: skip

    for k in range(n_before):  # before the profile began
        note((k - n_before) * LENGTH)
    for number in range(N_STEPS):
        begin = 1 + number * LENGTH
        event("user_annotation", f"ProfilerStep#{number}", begin, LENGTH, 1)
        for k in range(5):
            event("cpu_op", "aten::mm", begin + 10 * k * MS, MS, 1)
        work = ISSUED[0]
        for at, end in zip(ISSUED, ENDS, strict=True):
            event("cpu_op", "c10d::allreduce_", begin + at, 0.1 * MS, 1)
            event("user_annotation", "gloo:all_reduce", begin + max(work, at), end - max(work, at), 2)
            note(begin + at + (late if number == N_STEPS - 2 and at == ISSUED[-1] else 0.0))
            work = end
        event("cpu_op", "aten::add_", begin + UPDATE, 9 * MS, 1)
        event("user_annotation", "Optimizer.step#SGD.step", begin + UPDATE, 9 * MS, 1)
    ranks = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 2, "ranks": [0, 1]}
    about = {"backend": "gloo", "rank": rank, "world_size": 2, "pg_config": [ranks]}
    trace = {"schemaVersion": 1, "distributedInfo": about, "baseTimeNanoseconds": BASE, "traceEvents": events}
    record = {"version": "2.10", "pg_config": {"0": {"desc": "default_pg", "name": "0", "ranks": "[0, 1]"}},
              "pg_status": {}, "entries": entries, "rank": rank}  # fmt: skip
    files = [folder / f"trace.rank{rank}.json", folder / f"flight.rank{rank}.json"]
    for path, tree in zip(files, (trace, record), strict=True):
        path.write_text(json.dumps(tree))
    return files


def retimed(files, network):
    traced, steps = traced_graph(files, None, (), None, [])
    costs = network_costs(network)
    return steps, simulate_graph(traced.graph, costs, ExchangesOnLinks(costs)).iteration_time


def test_the_thread_waits_before_the_optimiser_for_the_call_that_ends_last(tmp_path):
    files = [path for rank in range(2) for path in write(tmp_path, rank)]
    steps, fast = retimed(files, "star:n_hosts=2,bandwidth=1000Gbps,latency=0s")
    assert [step.compute for step in steps] == pytest.approx([LENGTH - (ENDS[-1] - 0.0491)] * 2, abs=0.2 * MS)
    assert fast == pytest.approx(LENGTH - (ENDS[-1] - 0.0491), abs=0.3 * MS)
    _, slow = retimed(files, "star:n_hosts=2,bandwidth=100Mbps,latency=0s")
    each = ELEMENTS * 4 / 12.5e6  # a ring of two sends the whole array once
    assert slow == pytest.approx(0.020 + 2 * each + (LENGTH - ENDS[-1]), rel=0.02)


def test_a_record_that_is_noted_late_is_paired_by_its_order(tmp_path):
    files = [path for rank in range(2) for path in write(tmp_path, rank, late=0.040)]
    steps, _ = retimed(files, "star:n_hosts=2")
    assert [[call.size for call in step.calls] for step in steps] == [[4.0 * ELEMENTS] * 2] * 2
