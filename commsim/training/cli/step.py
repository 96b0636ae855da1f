"""``commsim workload step``: a training step from its configuration, with what each kind of traffic exposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from commsim.cli.flags import OVERHEAD, TOPOLOGY, DefaultOf, WithJson, flag, switched
from commsim.cli.flags.faults import Faults, Hashes
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_time
from commsim.report.answer import Answer, Facts, Part, remarks
from commsim.report.hash_columns import ends_of_hashes

from .phases import PhaseFlags

if TYPE_CHECKING:
    from commsim.training.steps.predicted_step import Step

# Phases of a job, more than which `place serve` does not take.
MANY_PHASES = 64


class OnNetwork(Hashes, Faults, WithJson):
    """Network of a step, and costs of its messages."""

    TITLE: ClassVar[str] = "network"
    topology: str | None = flag(
        "--topology", "--network", metavar=TOPOLOGY, help="network (default: the GPU's machines behind one switch)"
    )
    placement: str = flag(
        default=DefaultOf("commsim.core.placement:PACKED"), metavar="NAME|FILE", help="placement of the ranks"
    )
    overhead: str | None = flag(
        metavar="TIME",
        help="time per message at the sender (default: %(usual)s for hosts, 0s for GPUs of machines)",
        shown={"usual": OVERHEAD},
    )
    software: str | None = flag(metavar="NAME", help="communication library whose measured rate per port is used")


class StepConfig(OnNetwork, PhaseFlags):
    """All flags of ``commsim workload step``."""

    model: str = flag(required=True, metavar="NAME", help="transformer, such as llama3-405b; see `workload models`")
    gpu: str = flag(required=True, metavar="NAME", help="accelerator, such as h100")
    ranks: int | None = flag(metavar="N", help="GPUs (default: all of the network)")
    tp: int = flag(
        default=1, metavar="N", help="ranks of a tensor parallel group; ranks / (tp pp cp) are data parallel"
    )
    pp: int = flag(default=1, metavar="N", help="stages of a pipeline")
    cp: int = flag(default=1, metavar="N", help="ranks of a context parallel group")
    ep: int = flag(default=1, metavar="N", help="ranks of an expert parallel group")
    vp: int = flag(default=1, metavar="V", help="parts of the model on each stage, in the interleaved schedule")
    schedule: str = flag(
        default="",
        metavar="NAME",
        help="order of the passes of a pipeline: %(orders)s (default: interleaved with --vp, else 1f1b)",
        shown={"orders": DefaultOf("commsim.training.parallel.pipeline_orders:ORDERS", ", ".join)},
    )
    replicas: int = flag(
        default=1,
        metavar="N",
        help="groups of data parallel ranks that also sum gradients with each other, such as slices of TPUs",
    )
    micro_batch: int = flag(default=1, metavar="N", help="sequences of a micro-batch")
    global_batch: int = flag(required=True, metavar="N", help="sequences of a step")
    sequence: int | None = flag(
        metavar="N",
        help="tokens of a sequence (default: the model's own in its pre-training, else %(usual)s)",
        shown={"usual": DefaultOf("commsim.training.steps.ask:SEQUENCE")},
    )
    precision: str | None = flag(
        metavar="NAME",
        help="bf16, fp8, fp4 (default: %(usual)s)",
        shown={"usual": DefaultOf("commsim.training.steps.step_setting:PRECISION")},
    )
    factor: float | None = flag(
        metavar="X", help="compute time over roofline time (default: that of the most similar calibrated setup)"
    )
    sharding: str = flag(
        default=DefaultOf("commsim.training.steps.step_setting:StepSetting.sharding"),
        choices=("optimizer", "full", "none"),
        help="what data parallel ranks shard",
    )
    recompute: bool = switched(help="recompute the forward pass in the backward pass")
    frozen: bool = switched(help="weights are frozen: only adapters are trained")
    attention: str = flag(
        default="", choices=("fused", "flash", "unfused"),
        help="kernels of attention (default: flash with full sharding, else fused)",
    )  # fmt: skip
    graphs: bool = switched(help="capture the step as a CUDA graph: launches of the experts' kernels take no time")
    ignore_memory: bool = switched(help="predict a step that does not fit in the memory of the GPUs")
    expose: str | None = flag(
        metavar="KIND,...",
        help="kinds of traffic that do not overlap with computation: tensor, context, pipeline, data",
    )
    hide_experts: bool = switched(help="exchanges of experts overlap with the pass of another micro-batch")


def run_step(config: StepConfig) -> Answer:
    """Predict the step."""
    from commsim.training.steps.ask import training_step
    from commsim.training.steps.step_setting import hidden_kinds

    config.check_phases()
    asked = config.flags("topology", "expose", "hide_experts", "seed", "model", "gpu", "phases", "phase_gap", "job")
    overlap = hidden_kinds(config.expose, config.hide_experts)
    step = training_step(config.model, config.gpu, config.topology, overlap=overlap, seed=config.seed or 0, **asked)
    row = step.row()
    written = _write_phases(config, step) if config.phases else []
    return Answer(
        [_facts(step, row, _network_of(config)), *remarks(step.notes), *written], [row],
        config.flags("phases") | {"what": "step"},
    )  # fmt: skip


def _network_of(config: StepConfig) -> str:
    """Return the network and the faults as they are given; empty where none are."""
    faults = [f"--{name} {one}" for name in ("fail", "scale") for one in getattr(config, name)]
    return ", ".join(filter(None, (config.topology, *faults)))


def _write_phases(config: StepConfig, step: Step) -> list[Part]:
    """Write the step as a job of a ``jobs.json``."""
    from commsim.training.steps.step_phases import step_phases

    phases, period, link = step_phases(step, config.gap)
    whose = "a step of which nothing leaves a machine" if link is None else f"{link}, the busiest link out of a machine"
    parts = config.write_job(step.setting.model.name, step.setting.layout.n_ranks, period, phases, whose)
    few = f"{len(phases)} phases: --phase-gap 1ms, or longer, makes one of those that are closer, for a faster search"
    return [*parts, *(remarks([Remark("many-phases", few)]) if len(phases) > MANY_PHASES else [])]


def _interval(low: float, high: float) -> str:
    return f"{format_time(low)} to {format_time(high)}, 80 % of published steps; exposed times: no interval"


def _facts(step: Step, row: dict[str, Any], network: str) -> Facts:
    setting, layout = step.setting, step.setting.layout
    kinds = {kind: seconds for kind, seconds in step.exposed.items() if seconds + step.hidden[kind] > 0}
    if len(kinds) > 1:
        kinds["all"] = step.time - step.compute - step.bubble
    share = {kind: f"{format_time(seconds)}, {100 * seconds / step.time:.2f} %" for kind, seconds in kinds.items()}
    share |= {kind: f"{share[kind]}; hidden: {format_time(step.hidden[kind])}" for kind in kinds if kind != "all"}
    sizes = {"tp": layout.tensor, "pp": layout.pipeline, "cp": layout.context, "ep": layout.expert}
    divided = "".join(f", {name} {size}" for name, size in sizes.items() if size > 1)
    divided += f", {setting.schedule}" if setting.schedule else ""
    gpus = count_text(row["ranks"], "GPU")
    assumed = f"{setting.precision}{divided}, batch {setting.global_batch}, sequences of {setting.sequence}"
    took = format_time(step.time) + ends_of_hashes(step.hashes)
    return Facts(
        {
            "step": f"{took} of {setting.model.name} on {gpus}, {assumed}",
            **({"network": network} if network else {}),
            **({"interval": _interval(*step.interval)} if step.interval else {}),
            "computation": format_time(step.compute),
            "bubble": format_time(step.bubble),
            **{f"exposed, {kind}": text for kind, text in share.items()},
            "micro-batches": f"{setting.micro_batches} of {setting.micro_batch}, data parallel {setting.layout.data}",
            "tokens": f"{row['tokens_per_s_per_gpu']:.4g} per second and GPU",
            "model FLOP/s": f"{row['model_tflops_per_gpu']:.4g} T per GPU, {100 * row['mfu']:.1f} % of the peak",
        }
    )
