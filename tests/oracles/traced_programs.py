"""Traces of programs that are known: kernels on streams of a GPU, as a profiler would have written them."""

import json
from dataclasses import dataclass, field


@dataclass
class Program:
    """One rank of a program, step by step; times are seconds.

    ``compute`` runs on stream 7; ``call`` on another stream once the computation before it has ended, and is waited
    for by :meth:`wait`. With `launches` the processor's launches are recorded, and waits of streams.
    """

    rank: int
    world: int
    groups: list[dict] = field(default_factory=list)
    launches: bool = False

    def __post_init__(self):
        self.now = self.cpu = 0.0
        self.free, self.pending = {}, {}
        self.events, self.n = [], 0

    def _event(self, cat, name, start, length, **args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": args.pop("tid", 0),
                            "ts": round(start * 1e6, 6), "dur": round(length * 1e6, 6), "args": args})  # fmt: skip

    def _kernel(self, name, start, length, stream, **args):
        self.n += 1
        if self.launches:
            self.cpu += 1e-6
            self._event("cuda_runtime", "cudaLaunchKernel", self.cpu, 5e-7, correlation=self.n)
        self._event("kernel", name, start, length, stream=stream, correlation=self.n, **args)

    def step(self, number):
        self.cpu = max(self.cpu, self.now)
        self._event("user_annotation", f"ProfilerStep#{number}", self.now, 1e-6)

    def compute(self, seconds):
        self._kernel("void gemm<float>(float*)", self.now, seconds, 7)
        self.now += seconds

    def update(self, seconds):
        self._event("user_annotation", "Optimizer.step#SGD.step", self.now, seconds)
        self.compute(seconds)

    def call(self, key, operation, n_bytes, group, seconds, stream=20, kernel=""):
        start = max(self.now, self.free.get(stream, 0.0))
        about = next(one for one in self.groups if one["pg_name"] == group)
        sides = {"all_gather": (1 / about["pg_size"], 1), "reduce_scatter": (1, 1 / about["pg_size"])}
        sent, got = sides.get(operation, (1, 1))
        args = {} if kernel else {
            "Collective name": operation, "dtype": "Float", "In msg nelems": round(n_bytes * sent / 4),
            "Out msg nelems": round(n_bytes * got / 4), "Group size": about["pg_size"], "Process Group Name": group,
        }  # fmt: skip
        self._kernel(kernel or f"ncclDevKernel_{operation}", start, seconds, stream, **args)
        self.free[stream] = start + seconds
        self.n += 1
        self.pending[key] = start + seconds, stream, self.n
        self._event("cuda_runtime", "cudaEventRecord", self.cpu + 1e-7, 1e-7, correlation=self.n)

    def wait(self, *keys):
        for end, stream, recorded in [self.pending.pop(key) for key in keys]:
            self.now, self.n = max(self.now, end), self.n + 1
            if self.launches:
                self._event("cuda_runtime", "cudaStreamWaitEvent", self.cpu + 2e-7, 1e-7, correlation=self.n)
                waits = {"wait_on_stream": stream, "wait_on_cuda_event_record_corr_id": recorded}
                about = {"cuda_sync_kind": "Stream Wait Event", "stream": 7, "correlation": self.n, **waits}
                self._event("cuda_sync", "Stream Wait Event", self.cpu + 3e-7, 0.0, **about)

    def write(self, path):
        about = {"backend": "nccl", "rank": self.rank, "world_size": self.world, "pg_config": self.groups}
        path.write_text(json.dumps({"schemaVersion": 1, "distributedInfo": about, "traceEvents": self.events}))
        return path


def group(name, description, ranks):
    return {"pg_name": name, "pg_desc": description, "pg_size": len(ranks), "ranks": list(ranks)}


def data_parallel(rank, world, computes, times, **options):
    """Two buckets of gradients that are reduced during the backward pass, and an update, in three steps."""
    program = Program(rank, world, [group("0", "default_pg", range(world))], **options)
    forward, backward, update = computes
    for number in range(3):
        program.step(number)
        program.compute(forward)
        program.call("late layers", "all_reduce", 8e6, "0", times[0])
        program.compute(backward)
        program.call("early layers", "all_reduce", 4e6, "0", times[1])
        program.wait("late layers", "early layers")
        program.update(update)
    program.step(3)
    return program
