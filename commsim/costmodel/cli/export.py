"""``commsim export``: write what other programs embed."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from commsim.cli.flags import TOPOLOGY, DefaultOf, Flags, Verb, flag, percent, repeated
from commsim.cli.flags.faults import Hashes
from commsim.core.errors import InputError
from commsim.core.files.whole_files import check_writable, replacing
from commsim.core.spec import is_whole
from commsim.core.units import count_text, format_size, parse_nccl_size, share, write_size
from commsim.report.answer import Answer, Lines, Table, comments
from commsim.report.terminal import progress

if TYPE_CHECKING:
    from commsim.costmodel.build_cost_model import CostModelQuestion
    from commsim.costmodel.curve_times import MadeCurve

EXAMPLES = {
    "export": """
        commsim export cost-model star:n_hosts=8 --operation all_reduce --points 100 --jobs 1 -o star.json
        commsim export cost-model star:n_hosts=4 --operation all_gather --machines 2-4 -e 1M --jobs 1 -o small.json
        commsim export evaluator python -o cost_model.py
        commsim export evaluator c -o cost_model.c
        commsim export page -o cost_model.html""",
}

EVALUATORS = {"python": "cost_model.py", "javascript": "cost_model.js", "c": "cost_model.c"}
MAX_LISTED, MIN_LARGEST = 20, 64


class CostModelFlags(Hashes):
    """All flags of ``commsim export cost-model``."""

    topology: str = flag("topology", metavar=TOPOLOGY, help="network, such as dgx-h100@star:machines=4")
    output: str = flag("-o", required=True, metavar="FILE.json", help="file to write, of at most 1 MiB")
    operation: tuple[str, ...] = repeated(
        metavar="NAME",
        help="operation (default: all_reduce, all_gather, reduce_scatter, broadcast, all_to_all); repeatable",
    )
    machines: str | None = flag(
        metavar="N[,...]", help="numbers of machines, such as 1,2,4 or 1-16 (default: powers of two, and all)"
    )
    gpus: str | None = flag(metavar="N[,...]", help="numbers of GPUs of each machine (default: powers of two, and all)")
    fail: tuple[str, ...] = repeated(
        metavar="WHAT[ WHAT...]",
        help="add curves of the network with these faults, as in commsim run; repeatable: each adds a case",
    )
    seed: int | None = flag(metavar="N", help="seed of everything drawn at random (default: 0)")
    maxbytes: str = flag(
        "-e",
        default=DefaultOf("commsim.costmodel.build_cost_model:CostModelQuestion.high", write_size),
        metavar="SIZE",
        help="largest size",
    )
    tolerance: str = flag(
        default=DefaultOf("commsim.costmodel.build_cost_model:CostModelQuestion.tolerance", percent),
        metavar="SHARE",
        help="largest error between sizes of the file",
    )
    points: int = flag(
        default=DefaultOf("commsim.costmodel.build_cost_model:CostModelQuestion.points"),
        metavar="N",
        help="random sizes at which all curves together are checked",
    )
    jobs: int | None = flag(metavar="N", help="processes (default: all processors)")


class EvaluatorFlags(Flags):
    """All flags of ``commsim export evaluator``."""

    TITLE: ClassVar[str] = ""
    language: str = flag("language", choices=tuple(EVALUATORS), metavar="python|javascript|c", help="language")
    output: str = flag("-o", required=True, metavar="FILE", help="file to write")


class CostModelPageFlags(Flags):
    """All flags of ``commsim export page``."""

    model: str | None = flag("model", nargs="?", metavar="FILE.json", help="cost model that the page shows at once")
    output: str = flag("-o", required=True, metavar="FILE.html", help="page to write")


def question_of(config: CostModelFlags) -> CostModelQuestion:
    """Return what a cost model is of.

    Raises
    ------
    InputError
        If a number or a quantity is wrong.
    """
    from commsim.costmodel.build_cost_model import CostModelQuestion

    tolerance = share(config.tolerance, "--tolerance")
    if not 0 < tolerance < 1:
        raise InputError(f"--tolerance must be above 0 and below 100 %, got {config.tolerance}")
    if config.points < 1:
        raise InputError(f"--points must be at least 1, got {config.points}")
    if config.jobs is not None and config.jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {config.jobs}")
    high = parse_nccl_size(config.maxbytes, "-e")
    if high < MIN_LARGEST:
        raise InputError(f"-e must be at least {MIN_LARGEST} bytes, got {config.maxbytes}")
    machines = numbers(config.machines, "--machines")
    return CostModelQuestion(
        network=_with_machines(config.topology, machines), operations=config.operation, machines=machines,
        gpus=numbers(config.gpus, "--gpus"), faults=config.fail, seed=config.seed or 0, hashes=config.hashes,
        high=high, tolerance=tolerance, points=config.points,
    )  # fmt: skip


def _with_machines(network: str, machines: list[int]) -> str:
    """Return one machine, or machines on a star that does not say how many, as so many as are asked for."""
    from topologies.hosts.load import is_machine

    machine, _, fabric = network.partition("@")
    star, _, parameters = fabric.partition(":")
    if not machines or star not in ("", "star") or "machines=" in parameters or not is_machine(machine):
        return network
    if not star:
        return f"{machine}@star:machines={machines[-1]}" if machines[-1] > 1 else network
    return f"{machine}@star:{','.join(filter(None, (parameters, f'machines={machines[-1]}')))}"


def numbers(text: str | None, name: str) -> list[int]:
    """Read ``1,2,4-8``; nothing of None.

    Raises
    ------
    InputError
        If it is no list of numbers above 0.
    """
    found: set[int] = set()
    for part in (text or "").split(",") if text is not None else ():
        first, dash, last = part.strip().partition("-")
        if not (is_whole(first) and (is_whole(last) or not dash)):
            raise InputError(f"{name} takes numbers such as 1,2,4 or 1-16, got {text!r}")
        low, high = int(first), int(last or first)
        if not 1 <= low <= high or high - low > 4096:
            raise InputError(f"{name} takes numbers from 1 on, got {text!r}")
        found |= set(range(low, high + 1))
    return sorted(found)


def export_cost_model(config: CostModelFlags) -> Answer:
    """Compute a cost model, and write it."""
    question = question_of(config)
    check_writable(Path(config.output))
    from commsim.costmodel.build_cost_model import build_cost_model
    from commsim.costmodel.cost_model_file import write_cost_model

    made = build_cost_model(question, config.jobs, lambda items: progress(list(items), "computing curves"))
    write_cost_model(config.output, made.text)
    certificate = made.head["certificate"]
    cells = [_cells(one) for one in made.curves]
    columns = ["operation", "machines", "gpus", "faults", "sizes", "error"]
    table = Table(columns, cells, only_verbose=len(cells) > MAX_LISTED)
    size = format_size(len(made.text.encode()))
    line = (
        f"{config.output}: {size}, {count_text(len(cells), 'curve')}; largest error "
        f"{certificate['largest_error']:.2%} at {count_text(certificate['points'], 'random size')}"
    )
    return Answer([table, Lines([line])])


def _cells(made: MadeCurve) -> list[str]:
    """Return what the table says of a curve."""
    curve = made.curve
    shape = [curve["operation"], str(curve["machines"]), str(curve["gpus"]), curve["faults"] or "none"]
    return [*shape, str(len(curve["size"])), f"{max(made.errors):.2%}"]


def export_evaluator(config: EvaluatorFlags) -> Answer:
    """Write the file that evaluates a cost model in a language."""
    folder = resources.files("commsim.costmodel.evaluators")
    _write(config.output, (folder / EVALUATORS[config.language]).read_bytes())
    return Answer([Lines([f"{config.output}: copy it into your program; it depends on nothing"])])


def export_page(config: CostModelPageFlags) -> Answer:
    """Write the page that shows cost models."""
    from commsim.costmodel.page.cost_model_page import page_text

    if Path(config.output).suffix != ".html":
        raise InputError(f"{config.output}: a page is a file that ends with .html")
    _write(config.output, page_text(config.model).encode())
    what = f"shows {config.model}" if config.model else "load a cost model in it"
    return Answer([*comments([f"{config.output}: one file, without network; {what}"])])


def _write(path: str, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


COMMANDS = {
    "export cost-model": Verb(
        CostModelFlags, export_cost_model, "write times of collectives by operation, machines and size, for embedding"
    ),
    "export evaluator": Verb(
        EvaluatorFlags, export_evaluator, "write the file that evaluates a cost model: Python, JavaScript or C"
    ),
    "export page": Verb(CostModelPageFlags, export_page, "write an offline page that shows cost models"),
}
