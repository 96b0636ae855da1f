"""Programs of torch over gloo, and the same programs emulated: the same bits, and each collective as predicted."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ports import free_ports

import commsim as cs
from commsim.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
STAR = "star:n_hosts=4,bandwidth=25Gbps"
SIZES = (1, 7, 100, 1001, 106_820, 2_500_003)  # with 3 ranks the last one is cut into more than the fewest segments
N_RANKS = 3
SUMS = """
import sys
import numpy as np
import torch
from torch import distributed as d
d.init_process_group("gloo")
r, n = d.get_rank(), d.get_world_size()
for size in map(int, sys.argv[2:]):
    given = torch.from_numpy(np.random.default_rng([r, size]).standard_normal(size).astype(np.float32))
    whole, part = given.clone(), torch.empty(-(-size // n))
    d.all_reduce(whole)
    np.save(f"{sys.argv[1]}/all_reduce_{size}_{r}.npy", whole.numpy())
    d.reduce_scatter_tensor(part, given.repeat(n)[: n * len(part)].clone())
    np.save(f"{sys.argv[1]}/reduce_scatter_{size}_{r}.npy", part.numpy())
d.destroy_process_group()
"""

pytestmark = pytest.mark.torch


# Ranks as torchrun starts them, but as children of a process that has imported torch once for all.
RANKS = """
import os, runpy, sys
import torch.distributed
n, os.environ["MASTER_PORT"] = int(sys.argv[1]), sys.argv[2]
del sys.argv[:3]
os.environ.update(MASTER_ADDR="127.0.0.1", WORLD_SIZE=str(n), LOCAL_WORLD_SIZE=str(n))
for rank in range(n):
    if os.fork() == 0:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit()
sys.exit(any([os.wait()[1] for _ in range(n)]))
"""


def under_gloo(n_ranks, *program):
    """Run a program for real; return what it printed."""
    command = (sys.executable, "-c", RANKS, str(n_ranks), str(*free_ports(1)), *program)
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def emulated(n_ranks, out, *given):
    assert main(["emulate", "-n", str(n_ranks), "--topology", STAR, "--json", str(out), *map(str, given)]) == 0
    return json.loads(out.read_text())["results"]


def of_ranks(size):
    return [np.random.default_rng([r, size]).standard_normal(size).astype(np.float32) for r in range(N_RANKS)]


def are_within_the_bound(folder):
    """Whether sums are as near to the exact ones as any order of adding is."""
    within = []
    for size in SIZES:
        given = of_ranks(size)
        bound = (N_RANKS - 1) * np.finfo(np.float32).eps * np.abs(given).sum(axis=0, dtype=np.float64)
        exact = np.sum(given, axis=0, dtype=np.float64)
        within.append((np.abs(np.load(folder / f"all_reduce_{size}_0.npy") - exact) <= bound).all())
    return all(within)


@pytest.mark.slow
def test_sums_have_gloos_bits(tmp_path):
    pytest.importorskip("torch")
    program, real, same = tmp_path / "sums.py", tmp_path / "real", tmp_path / "same"
    program.write_text(SUMS)
    real.mkdir()
    same.mkdir()
    under_gloo(N_RANKS, str(program), str(real), *map(str, SIZES))
    emulated(N_RANKS, tmp_path / "out.json", "--library", "gloo", "--", "python", program, same, *SIZES)
    files = sorted(file.name for file in real.iterdir())
    assert len(files) == 2 * N_RANKS * len(SIZES)
    for name in files:
        assert np.array_equal(np.load(real / name), np.load(same / name)), name
    assert are_within_the_bound(same)
    # in the order of ranks the sum has other bits: else the order would not matter, and this test would show nothing
    first, second, third = of_ranks(SIZES[-1])
    assert not np.array_equal(first + second + third, np.load(real / f"all_reduce_{SIZES[-1]}_0.npy"))


@pytest.mark.deep
def test_sums_by_another_algorithm_are_within_the_bound_of_any_order(tmp_path):
    pytest.importorskip("torch")
    program = tmp_path / "sums.py"
    program.write_text(SUMS)
    emulated(N_RANKS, tmp_path / "out.json", "--", "python", program, tmp_path, *SIZES)
    assert are_within_the_bound(tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("parallel", ["fsdp", "ddp"])
def test_twenty_steps_have_the_losses_of_gloo_and_collectives_take_what_is_predicted(
    tmp_path, capfd, monkeypatch, parallel
):
    pytest.importorskip("torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as torchrun does: matrix products depend on it
    program = (str(EXAMPLES / "train_llama.py"), "--steps", "20", "--parallel", parallel)
    real = losses(under_gloo(4, *program))
    capfd.readouterr()
    rows = emulated(4, tmp_path / "out.json", "--library", "gloo", "--", "python", *program)
    assert losses(capfd.readouterr().out) == real
    assert len(real) == 20
    assert len(rows) >= 4
    for row in rows:
        predicted = cs.predict(row["algorithm"], STAR, row["size_B"], n_ranks=4, overhead="0us").time
        assert row["time_s"] == pytest.approx(predicted, rel=1e-9), row


def losses(text):
    return re.findall(r"step \d+: loss ([\d.]+)", text)
