"""``commsim workload``: how long a training iteration takes, and its demand on the network."""

from __future__ import annotations

from commsim.cli.flags import Verb, WithJson

from . import parallel, share, step, systems, training, transfers

COMMANDS = {
    "workload run": Verb(
        training.Config, training.run, "predict iterations from a trace of gradients, or from a graph of tasks"
    ),
    "workload policies": Verb(WithJson, training.list_policies, "print the policies, with their parameters"),
    "workload pipeline": Verb(
        parallel.PipelineConfig,
        parallel.run_pipeline,
        "simulate pipeline schedules: iteration time and bubble, beside the published formula",
    ),
    "workload moe": Verb(
        parallel.MoeConfig,
        parallel.run_moe,
        "simulate a mixture of experts: all-to-all and all-reduce, first come first served or by priority",
    ),
    "workload reshard": Verb(
        parallel.ReshardConfig,
        parallel.run_reshard,
        "move a piece of a tensor from one mesh to another: send-recv, all-gather, broadcast",
    ),
    "workload step": Verb(
        step.StepConfig,
        step.run_step,
        "predict a training step of a transformer: tensor, pipeline, context, data and expert parallel traffic",
    ),
    "workload kv": Verb(
        transfers.KvConfig,
        transfers.run_kv,
        "send a KV cache from prefill to decode ranks that divide heads in other ways",
    ),
    "workload weights": Verb(
        transfers.WeightsConfig,
        transfers.run_weights,
        "push weights from trainer to inference ranks: directly, through chains, or as the best broadcast",
    ),
    "workload systems": Verb(
        systems.Config, systems.run, "run published training systems (KungFu, PipeDream, Gemini, ...) with parameters"
    ),
    "workload share": Verb(
        share.Config, share.run, "simulate several jobs on one network: what each loses, and on which links"
    ),
}
