"""What stands for a file and is none: every flag that takes a file refuses pipes, devices and folders on one line."""

import argparse
import ast
import json
import os
import re
import signal
from pathlib import Path

import pytest

from commsim.cli import listed_verbs, main, parser_of

ROOT = Path(__file__).parents[2]
# These open files of the system, of the package or of a run of their own, whose names no user gives.
OWN_FILES = {
    "commsim/real/busy.py",
    "commsim/real/calibrate.py",
    "commsim/cli/__init__.py",
    "commsim/cli/examples.py",
    "commsim/cli/progress.py",  # /proc/self/schedstat
    "commsim/cli/schema.py",
    "commsim/costmodel/cli/export.py",
    "commsim/costmodel/cost_model_file.py",
    "commsim/costmodel/evaluators/cost_model.py",  # for other programs; commsim gives it what it has read
    "commsim/costmodel/page/cost_model_page.py",
    "commsim/core/compiling/first_commands.py",
    "commsim/cli/process.py",
    "commsim/core/compiling/kernel_cache.py",
    "commsim/core/files/opening.py",
    "commsim/core/registry.py",
    "commsim/profiles/kernel_names.py",
    "commsim/core/limits.py",
    "commsim/diagnosis/reached.py",
    "commsim/experts/kernels.py",
    "commsim/nccl/error_model.py",
    "commsim/nccl/gpu_costs.py",
    "commsim/nccl/intervals.py",
    "commsim/nccl/rccl_choice.py",
    "commsim/nccl/rccl_costs.py",
    "commsim/pages/page/write.py",
    "commsim/papers/paper.py",
    "commsim/auto/known_error.py",
    "commsim/training/gpus.py",
    "commsim/prediction/software.py",
    "commsim/real/testbed/build.py",
    "commsim/real/testbed/launch.py",
    "commsim/real/testbed/measure.py",
    "commsim/training/published_gradients.py",
    "commsim/training/steps/calibration.py",
    "commsim/training/steps/step_interval.py",
    "commsim/training/steps/transformer.py",
    "commsim/real/testbed/cells.py",
    "commsim/real/testbed/switch.py",
    "switch_model/bpf/attachment.py",
    "switch_model/bpf/program.py",
    "switch_model/bpf/system_call.py",
    "topologies/presets.py",
}
# Libraries that open a name by themselves are given only names that were looked at before.
LOOKED_AT = {
    "commsim/live/cli/all_reduce.py",
    "commsim/sparse/gradients_file.py",
    "commsim/core/files/npz.py",
    "commsim/formats/json_rows.py",
}
OPENERS = {
    "open",
    "read_text",
    "read_bytes",
    "load",
    "ParquetFile",
    "ZipFile",
    "memmap",
    "fromfile",
    "loadtxt",
    "genfromtxt",
}


def opened_in(path):
    """Names of calls that open a file to read it."""
    text = path.read_text()
    if not any(f"{name}(" in text for name in OPENERS):  # as ruff writes it; to parse all files takes seconds
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "open":
            yield "open"
        if isinstance(node.func, ast.Attribute) and node.func.attr in OPENERS:
            of = ast.unparse(node.func.value)
            if node.func.attr != "load" or of in ("np", "numpy", "json", "pickle", "tomllib", "torch"):
                yield f"{of}.{node.func.attr}"


@pytest.mark.slow
def test_files_are_opened_in_one_place():
    allowed = {*OWN_FILES, *LOOKED_AT}
    stray = {}
    for package in ("commsim", "collectives", "topologies", "switch_model"):
        for path in (ROOT / package).rglob("*.py"):
            name = str(path.relative_to(ROOT))
            calls = {call for call in opened_in(path) if not call.startswith(("self._plane.", "self.", "gzip."))}
            if calls and name not in allowed:
                stray[name] = sorted(calls)
    assert not stray, "use commsim.core.files.opening or commsim.core.files"
    for name in LOOKED_AT:
        assert "check_regular(" in (ROOT / name).read_text(), name


# The flag that takes a file stands last, and the file after it; NAME.suffix says which name it gets.
INPUTS = """
run ring_all_reduce --ranks 4 --topology X.toml
run ring_all_reduce --topology star:n_hosts=4 --placement X.json
run --topology star:n_hosts=4 --collective X.py
run --topology star:n_hosts=4 --collective X.npz
run --topology star:n_hosts=4 X.py
run ring_all_reduce --topology star:n_hosts=4 --engine packet -b 1M -e 1M --transport X.py
trace --topology star:n_hosts=4 ring_all_reduce -o x.json --engine packet --transport X.py
traffic --pattern permutation --topology star:n_hosts=4 --transport X.py
trace --ranks 4 ring_all_reduce -o x.json --topology X.json
trace --topology star:n_hosts=4 ring_all_reduce -o x.json --placement X.json
trace --topology star:n_hosts=4 -o x.json --collective X.npz
advise --size 1MiB --topology X.toml
advise --topology star:n_hosts=4 --gradients X.npz
sweep cheapest X.toml
nccl --topology X.toml
nccl --topology dgx-h100 --placement X.json
nccl --topology dgx-h100 --graph X.xml
nccl --tuner-csv x.csv --from X.csv
bound --operation all_reduce --topology X.toml
bound --operation all_reduce --topology star:n_hosts=4 --placement X.json
bound --operation all_reduce --topology star:n_hosts=4 --collective X.npz
synthesize --operation all_reduce --topology X.toml
synthesize --operation all_reduce --topology star:n_hosts=4 --placement X.json
synthesize --operation all_reduce --topology star:n_hosts=4 --scale link:h0:*=0.5 --running X.npz
compare --topology star:n_hosts=4 X.json
compare --topology star:n_hosts=4 X.csv
expect dgx-h100 --machines 2 --from X.txt
fit X.csv
fit X.parquet
switch simulate --topology X.toml
switch pcap X.pcap
switch serve --port 0 --secret-file X.txt
switch status --secret-file X.txt
switch all-reduce --rank 0 --workers 1 --secret-file X.txt
workload run --topology star:n_hosts=4 --workers 4 --trace X.csv
workload run --topology star:n_hosts=4 --graph X.toml
workload pipeline --stages 2 --micro-batches 2 --forward 1ms --backward 1ms --topology X.toml
workload pipeline --stages 2 --micro-batches 2 --forward 1ms --backward 1ms --topology star:n_hosts=4 --placement X.json
workload share X.toml j.json
workload import -o x.toml X.goal
workload export -o x.et X.toml
workload calls X.json
workload calls x.json --topology star:n_hosts=4 --kernels X.toml
emulate -n 2 --topology X.toml -- python x.py
emulate -n 2 --topology star:n_hosts=2 --placement X.json -- python x.py
emulate -n 2 --topology star:n_hosts=2 --compute X.json -- python x.py
emulate -n 2 --topology star:n_hosts=2 -- python X.py
place rank X.toml j.json
place score --capacity 1Gbps X.json
place serve --cluster X.toml
place import --from slurm-conf --tier-bandwidth 1=100Gbps -o x.toml X.conf
place import --from nvidia-smi -o x.toml X.txt
place import --from nccl-xml -o x.toml X.xml
place export --to nodelist --placements j.json -o x X.toml
cluster run --policy fifo --trace philly:jobs=2 X.toml
cluster models --assume X.toml
cluster trace --from philly -o x.csv X.csv
sweep run -o x X.toml
sweep run -o x --allow-code X.py good.toml
sweep plan --allow-code X.py good.toml
sweep cheapest --allow-code X.py good.toml
sweep plan X.toml
sweep status X
sweep sql X "select 1"
sweep export -o x.csv X
report X.json
diff X.json b.json
plot busbw -o x.svg X.json
topo show X.toml
topo show star:n_hosts=4 --draw x.svg --load X.json
topo check X.toml
topo save -o x.toml X.toml
topo import -o x.toml X.xml
topo export --to astra-network -o x X.toml
schedule show X.npz
schedule show X.npz --draw x.svg --topology X.toml
schedule check X.npz
schedule save -o x.npz X.npz
schedule import -o x.npz X.xml
schedule export --to msccl -o x.xml X.npz
traffic --topology star:n_hosts=4 --pattern X.csv
"""
# Flags that come to the same reader as one above, but only with files or rights that are not made here.
ELSEWHERE = {
    "workload calls --graph",
    "workload calls --phases",
    "workload calls --placement",
    "workload calls --topology",
    "emulate --phases",
    "expect --placement",
    "watch --topology",
    "cluster run --assume",
    "compare --collective",
    "compare --placement",
    "compare --topology",
    "place export",
    "place order",
    "run --jobs",
    "traffic --topology",
    "place rank --jobs",
    "place serve",
    "plot --measured",
    "report --measured",
    "schedule export --topology",
    "schedule import --topology",
    "switch all-reduce --input",
    "testbed run",
    "testbed share",
    "topo export --topology",
    "topo import --topology",
    "validate",
    "workload moe",
    "workload reshard",
    "workload run --phases",
    "workload pipeline --phases",
    "workload moe --phases",
    "workload step --phases",
    "workload run --vector-add",
    "workload share --shifts",
}
KINDS = {"pipe": os.mkfifo, "endless": lambda path: path.symlink_to("/dev/zero")}
SAYS = r"not a regular file|[Ii]s a directory|not a directory|of a sweep|no readable|folder without|not a file"
LINES = [line for line in INPUTS.splitlines() if line]


@pytest.fixture
def in_time():
    """Let nothing wait for more than 20 s."""

    def too_long(*_):
        raise AssertionError("it waits for a file that has no end, or no beginning")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(100)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("line", LINES)
def test_what_is_no_file_is_refused_and_not_waited_for(line, kind, tmp_path, monkeypatch, capsys, in_time):
    monkeypatch.chdir(tmp_path)
    words = re.findall(r'"([^"]*)"|(\S+)', line)
    words = [quoted or plain for quoted, plain in words]
    name = next(word for word in words if re.fullmatch(r"X(\.\w+)?", word))
    KINDS[kind](tmp_path / name)
    (tmp_path / "JOBS").write_text(json.dumps({"jobs": []}))
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main(words))
    said = capsys.readouterr().err
    assert ended.value.code == 2, said
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) == 1, said
    assert re.search(SAYS, said), said


def takes_a_file(action):
    words = " ".join([str(action.metavar or ""), str(action.dest)])
    return re.search(r"FILE|\.toml|\.json|\.csv|CLUSTER|JOBS|SWEEP|MEASURED|DIR\b|NETWORK", words) is not None


def actions_of(parser):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from actions_of(sub)
        else:
            yield parser, action


OUTPUTS = {
    "--json",
    "--osu",
    "--draw",
    "--report",
    "--output",
    "--pcap",
    "--plot",
    "--csv",
    "--timeline",
    "--job",
    "--msccl",
    "--tuner-csv",
}


@pytest.mark.parametrize("verb", listed_verbs())
def test_every_flag_that_takes_a_file_is_tried(verb):
    tried = {(" ".join(line.split()[:2]), word) for line in LINES for word in line.split() if word.startswith("--")}
    tried |= {(verb, word) for line in LINES for word in line.split() if line.split()[0] == verb}
    missing = []
    for parser, action in actions_of(parser_of(verb)[0]):
        names = set(action.option_strings)
        if not names or not takes_a_file(action) or names & OUTPUTS:
            continue
        command = parser.prog.removeprefix("commsim ")
        everywhere = command in ELSEWHERE or any(f"{command} {name}" in ELSEWHERE for name in names)
        if not everywhere and not any((command, name) in tried or (verb, name) in tried for name in names):
            missing.append(f"{parser.prog} {sorted(names)}")
    assert not missing
