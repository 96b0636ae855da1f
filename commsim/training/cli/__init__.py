"""``commsim workload``: time of a training step and its traffic; profiles of programs and of gradients."""

from __future__ import annotations

from commsim.cli.flags import Verb, WithJson

from . import kv_and_weights, models_and_policies, pipeline_and_moe, reshard, share, step, workload_run

EXAMPLES = {
    "workload": """
        commsim workload step --model llama3-8b --gpu h100 --ranks 64 --tp 4 --global-batch 128
        commsim workload kv --layers 4 --kv-heads 8 --from 2 --to 4 --tokens 128 --topology star:n_hosts=6
        commsim workload weights --size 1GB --from 2 --to 4 --topology star:n_hosts=6
        commsim workload pipeline --stages 4 --micro-batches 8 --forward 10ms --backward 20ms
        commsim workload moe --layers 4 --ranks 8 --attention 1ms --expert 2ms --tokens 20MB --gradients \
            60MB --bandwidth 100Gbps
        commsim workload reshard --size 1GB --receivers 4 --bandwidth 100Gbps
        commsim workload models
        commsim workload policies
        commsim workload systems
        commsim workload profile torch.nn:PReLU --input 8 -o gradients.csv
        commsim workload run --trace gradients.csv --workers 4 --policy ddp --bandwidth 10Gbps
        commsim schedule export ring_all_reduce --ranks 4 --size 1M -o ring.goal
        commsim workload import ring.goal -o graph.toml
        commsim workload export graph.toml -o graph.et
        commsim workload calls graph.0.et --network star:n_hosts=4,bandwidth=10Gbps
        commsim place examples/cluster.toml examples/jobs.json --json placed.json
        commsim workload share examples/cluster.toml examples/jobs.json --shifts placed.json
        commsim workload formats""",
}

COMMANDS = {
    "workload run": Verb(
        workload_run.TrainingConfig,
        workload_run.run,
        "predict iterations from a trace of gradients, or from a graph of tasks",
    ),
    "workload models": Verb(
        WithJson, models_and_policies.list_models, "print the transformers and accelerators of `workload step`"
    ),
    "workload policies": Verb(WithJson, models_and_policies.list_policies, "print the policies, with their parameters"),
    "workload pipeline": Verb(
        pipeline_and_moe.PipelineConfig,
        pipeline_and_moe.run_pipeline,
        "simulate pipeline schedules: iteration time and bubble, next to the published formula",
    ),
    "workload moe": Verb(
        pipeline_and_moe.MoeConfig,
        pipeline_and_moe.run_moe,
        "simulate a mixture of experts: all-to-all and all-reduce, first come first served or by priority",
    ),
    "workload reshard": Verb(
        reshard.ReshardConfig,
        reshard.run_reshard,
        "predict the time to move a piece of a tensor between meshes by send-recv, all-gather or broadcast",
    ),
    "workload step": Verb(
        step.StepConfig,
        step.run_step,
        "predict a training step of a transformer: tensor, pipeline, context, data and expert parallel traffic",
    ),
    "workload kv": Verb(
        kv_and_weights.KvConfig,
        kv_and_weights.run_kv,
        "predict the time to send a KV cache from prefill ranks to decode ranks that divide the heads differently",
    ),
    "workload weights": Verb(
        kv_and_weights.WeightsConfig,
        kv_and_weights.run_weights,
        "predict the time to send weights from trainer to inference ranks directly, in chains or by the best broadcast",
    ),
    "workload share": Verb(
        share.WorkloadShareConfig,
        share.run,
        "simulate several jobs on one network: how much each is slowed, and on which links",
    ),
}
