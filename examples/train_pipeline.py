"""Train layers by pipeline and data parallel, as torchtitan does: a plain program that knows nothing of commsim.

torchrun --nproc-per-node 4 examples/train_pipeline.py
commsim emulate -n 64 --stages 4 --topology dgx-h100@leaf_spine:machines=8,n_leaves=2,n_spines=4 \
    --compute roofline:h100 -- python examples/train_pipeline.py --stages 4 --hidden 8192 --batch 64 --length 4096 \
    --shard
"""

import argparse
import time

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

SCHEDULES = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe, "interleaved": ScheduleInterleaved1F1B}


def main() -> None:
    """Train for some steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--stages", type=int, default=2, help="ranks of one pipeline")
    parser.add_argument("--schedule", choices=SCHEDULES, default="1f1b")
    parser.add_argument("--layers", type=int, default=2, help="layers of each part of the model")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--shard", action="store_true", help="FSDP2 in place of an all-reduce of gradients")
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    shape = args.stages, distributed.get_world_size() // args.stages
    mesh = init_device_mesh(device.type, shape, mesh_dim_names=("pipeline", "data"))
    pipeline, data = mesh["pipeline"], mesh["data"]
    own, n_parts = pipeline.get_local_rank(), 2 if args.schedule == "interleaved" else 1
    torch.manual_seed(own)

    parts = []
    for part in range(n_parts):
        layers = nn.Sequential(*(nn.Linear(args.hidden, args.hidden, bias=False) for _ in range(args.layers)))
        layers.to(device)
        if args.shard:
            for layer in layers:
                fully_shard(layer, mesh=data)
            fully_shard(layers, mesh=data)
        number = own + part * args.stages
        parts.append(PipelineStage(layers, number, args.stages * n_parts, device, group=pipeline.get_group()))
    schedule = SCHEDULES[args.schedule](
        parts if n_parts > 1 else parts[0], n_microbatches=2 * args.stages, loss_fn=nn.functional.mse_loss
    )
    parameters = [one for part in parts for one in part.submod.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)

    for step in range(args.steps):
        began = time.perf_counter()
        x, target = (torch.randn(args.batch, args.length, args.hidden, device=device) for _ in range(2))
        given = (x,) if own == 0 else ()
        if own == args.stages - 1:
            schedule.step(*given, target=target, losses=[])
        else:
            schedule.step(*given)
        if not args.shard:
            for one in parameters:
                distributed.all_reduce(one.grad, group=data.get_group())
        optimizer.step()
        optimizer.zero_grad()
        if device.type == "cuda":
            torch.cuda.synchronize()
        if distributed.get_rank() == 0:
            print(f"step {step}: {(time.perf_counter() - began) * 1e3:.3f} ms")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
