"""``commsim workload``: time of a training step and its traffic; profiles of programs and of gradients."""

from __future__ import annotations

from commsim.cli.flags import Verb, WithJson

from . import parallel, share, step, training, transfers

COMMANDS = {
    "workload run": Verb(
        training.WorkloadRunConfig,
        training.run,
        "predict iterations from a trace of gradients, or from a graph of tasks",
    ),
    "workload policies": Verb(WithJson, training.list_policies, "print the policies, with their parameters"),
    "workload pipeline": Verb(
        parallel.PipelineConfig,
        parallel.run_pipeline,
        "simulate pipeline schedules: iteration time and bubble, next to the published formula",
    ),
    "workload moe": Verb(
        parallel.MoeConfig,
        parallel.run_moe,
        "simulate a mixture of experts: all-to-all and all-reduce, first come first served or by priority",
    ),
    "workload reshard": Verb(
        parallel.ReshardConfig,
        parallel.run_reshard,
        "predict the time to move a piece of a tensor between meshes by send-recv, all-gather or broadcast",
    ),
    "workload step": Verb(
        step.StepConfig,
        step.run_step,
        "predict a training step of a transformer: tensor, pipeline, context, data and expert parallel traffic",
    ),
    "workload kv": Verb(
        transfers.KvConfig,
        transfers.run_kv,
        "predict the time to send a KV cache from prefill ranks to decode ranks that divide the heads differently",
    ),
    "workload weights": Verb(
        transfers.WeightsConfig,
        transfers.run_weights,
        "predict the time to send weights from trainer to inference ranks directly, in chains or by the best broadcast",
    ),
    "workload share": Verb(
        share.WorkloadShareConfig,
        share.run,
        "simulate several jobs on one network: how much each is slowed, and on which links",
    ),
}
