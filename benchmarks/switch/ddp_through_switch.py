"""A small transformer trained by data-parallel processes, its gradients summed in the live switch or as torch does it.

``python -m benchmarks.switch.ddp_through_switch`` starts a switch that loses packets on purpose, and workers that train
the same model twice: with torch's own all-reduce, and with our communication hook. At every step of the second, all
gradients are gathered and summed in float64, and the switch's sum is compared with that: its error must be within the
bound of quantisation (`error_over_bound`). The losses are printed side by side.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.report.terminal import print_table
from switch_model.live import SwitchGroup, switch_all_reduce
from switch_model.live.sums import error_over_bound
from switch_model.quantize import block_exponents

LIMIT_S = 600
COLUMNS = ["step", "loss, switch", "loss, plain", "difference", "error / bound"]


def main(argv: Sequence[str] | None = None) -> int:
    """Train twice, compare and print; 1 if an error exceeds its bound."""
    parser = argparse.ArgumentParser(prog="benchmarks.switch.ddp_through_switch", description=__doc__)
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes (2)")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="optimiser steps (20)")
    parser.add_argument("--drop", type=float, default=0.001, metavar="P", help="chance that a packet is lost (0.001)")
    args = parser.parse_args(argv)
    command = [sys.executable, "-m", "commsim", "switch", "serve", "--port", "0", "--elements-per-packet", "256",
               "--drop-in", str(args.drop), "--drop-out", str(args.drop)]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as switch:
        try:
            assert switch.stdout is not None
            port = int(switch.stdout.readline().split("port ")[1].split()[0])
            ours, plain, worst, traffic = _train_all(args.workers, args.steps, port)
        finally:
            switch.terminate()
    rows = [[f"{i}", f"{a:.6f}", f"{b:.6f}", f"{a - b:+.1e}", f"{w:.3f}"]
            for i, (a, b, w) in enumerate(zip(ours, plain, worst, strict=True))]  # fmt: skip
    print_table(COLUMNS, rows, f"{args.workers} workers, {args.drop:.2%} of packets lost each way; {traffic}")
    largest = max(abs(a - b) / b for a, b in zip(ours, plain, strict=True))
    print(f"# largest difference of the loss {largest:.1e}; largest error of a sum {max(worst):.3f} of its bound")
    return int(max(worst) > 1)


def _train_all(n_workers: int, n_steps: int, port: int) -> Any:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meeting = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    answer, theirs = context.Pipe(False)
    workers = [context.Process(target=_worker, args=(rank, n_workers, n_steps, port, meeting, theirs))
               for rank in range(n_workers)]  # fmt: skip
    for worker in workers:
        worker.start()
    theirs.close()
    try:
        if not answer.poll(LIMIT_S):
            raise TimeoutError(f"no worker has ended within {LIMIT_S} s")
        return answer.recv()
    finally:
        for worker in workers:
            worker.join(20)
            worker.kill()


def _worker(rank: int, n_workers: int, n_steps: int, port: int, meeting: int, answer: Any) -> None:
    import torch

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    where = f"tcp://127.0.0.1:{meeting}"
    torch.distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=n_workers)
    plain, _ = _train(rank, n_steps, None)
    with SwitchGroup("ddp", rank, n_workers, port=port) as group:
        ours, worst = _train(rank, n_steps, group)
        traffic = group.traffic
    torch.distributed.destroy_process_group()
    if rank == 0:
        told = f"rank 0 sent {traffic.sent} packets, {traffic.retransmissions} of them again"
        answer.send((ours, plain, worst, told))


def _train(rank: int, n_steps: int, group: SwitchGroup | None) -> tuple[list[float], list[float]]:
    """Return the mean loss of all ranks before each step, and the worst error of a sum over its bound in it."""
    import torch
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel

    from benchmarks.real_gradients.small_transformer import VOCABULARY, SmallTransformer, _batch, _text

    torch.manual_seed(0)
    model, text, random = DistributedDataParallel(SmallTransformer()), _text(), np.random.default_rng(rank)
    ratios: list[float] = []
    if group is not None:
        model.register_comm_hook(None, _measured_hook(group, ratios))
    optimiser, losses, worst = torch.optim.AdamW(model.parameters(), lr=1e-3), [], []
    for _ in range(n_steps):
        batch = _batch(text, random)
        loss = cross_entropy(model(batch[:, :-1]).reshape(-1, VOCABULARY), batch[:, 1:].reshape(-1))
        optimiser.zero_grad()
        ratios.clear()
        loss.backward()
        optimiser.step()
        mean = loss.detach().clone()
        torch.distributed.all_reduce(mean)
        losses.append(float(mean) / torch.distributed.get_world_size())
        worst.append(max(ratios, default=0.0))
    return losses, worst


def _measured_hook(group: SwitchGroup, ratios: list[float]) -> Any:
    """As `switch_hook`, and compares each sum with the exact one."""
    import torch

    def hook(_: object, bucket: Any) -> Any:
        gradients = bucket.buffer()
        parts = [torch.empty_like(gradients) for _ in range(group.lease.n_workers)]
        torch.distributed.all_gather(parts, gradients)
        switch_all_reduce(gradients, group)
        ratios.append(_error_over_bound(gradients.numpy(), [part.numpy() for part in parts], group.lease.elements))
        future = torch.futures.Future()
        future.set_result(gradients.div_(group.lease.n_workers))
        return future

    hook.__annotations__.clear()  # torch reads them, and takes only its own
    return hook


def _error_over_bound(got: NDArray[np.float32], parts: list[NDArray[np.float32]], elements: int) -> float:
    exact = np.sum([part.astype(np.float64) for part in parts], axis=0)
    agreed = np.max([block_exponents(part, elements) for part in parts], axis=0)
    return error_over_bound(got, exact, agreed, elements, len(parts))


if __name__ == "__main__":
    sys.exit(main())
