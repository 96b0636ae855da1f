"""Program for mpiexec: dispatch, experts that multiply, and combine over MPI; the sums are those of a loop in NumPy."""

import sys

import numpy as np

from collectives import COLLECTIVES
from collectives.experts.routing import routed
from commsim.real import connect
from tests.oracles.one_run import run_once

TOKENS, EXPERTS, TOP_K, WIDTH = 12, 16, 4, 5


def main() -> int:
    with connect.session("mpi") as transport:
        p, rank = transport.size, transport.rank
        machines = tuple(tuple(range(i, min(i + 2, p))) for i in range(0, p, 2))
        asked = {
            "tokens": TOKENS, "n_experts": EXPERTS, "top_k": TOP_K, "routing": "zipf", "machines": machines,
            "pieces": 3, "in_order": True,
        }  # fmt: skip
        dispatch, combine = (COLLECTIVES[f"ep_{name}"].build(p, **asked) for name in ("dispatch", "combine"))
        inputs = np.random.default_rng(7).integers(-99, 100, (p, dispatch.n_chunks * WIDTH)).astype(np.float32)
        experts = run_once(transport, dispatch, inputs[rank]) * np.float32(1 + rank)
        sums = run_once(transport, combine, experts)
        drawn = routed(p * TOKENS, EXPERTS, TOP_K, "zipf", 1.0, 0, EXPERTS, 0) // (EXPERTS // p)
        for token in range(TOKENS):
            part = slice(token * WIDTH, (token + 1) * WIDTH)
            wanted = np.zeros(WIDTH, np.float32)
            for dest in set(drawn[rank * TOKENS + token].tolist()):
                wanted += inputs[rank, part] * np.float32(1 + dest)
            if not np.array_equal(sums[part], wanted):
                print(f"rank {rank}: token {token} is wrong")
                return 1
        transport.barrier()
        if rank == 0:
            print(f"{p} ranks: all right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
