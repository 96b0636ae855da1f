"""Programs of torch over gloo, and the same programs emulated: the same bits, and each collective as predicted."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import commsim as cs
from commsim.cli import main

EXAMPLES = Path(__file__).parents[3] / "examples"
STAR = "star:n_hosts=4,bandwidth=25Gbps"
SIZES = (1, 7, 100, 1001, 106_820, 2_500_003)  # with 3 ranks the last one is cut into more than the fewest segments
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


def under_gloo(n_ranks, *program):
    """Run a program for real; return what it printed."""
    command = (sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n_ranks}", *program)
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def emulated(n_ranks, out, *given):
    assert main(["emulate", "-n", str(n_ranks), "--topology", STAR, "--json", str(out), *map(str, given)]) == 0
    return json.loads(out.read_text())["results"]


@pytest.mark.slow
def test_sums_have_gloos_bits_and_by_another_algorithm_those_of_the_bound(tmp_path):
    pytest.importorskip("torch")
    n_ranks, program = 3, tmp_path / "sums.py"
    program.write_text(SUMS)
    folders = [tmp_path / name for name in ("real", "same", "other")]
    for folder in folders:
        folder.mkdir()
    real, same, other = folders
    under_gloo(n_ranks, str(program), str(real), *map(str, SIZES))
    for folder, more in ((same, ("--library", "gloo")), (other, ())):
        emulated(n_ranks, tmp_path / "out.json", *more, "--", "python", program, folder, *SIZES)
    files = sorted(file.name for file in real.iterdir())
    assert len(files) == 2 * n_ranks * len(SIZES)
    differ = 0
    for name in files:
        bits, ours, theirs = (np.load(folder / name) for folder in (real, same, other))
        assert np.array_equal(bits, ours), name
        differ += not np.array_equal(bits, theirs)
    assert differ  # else the order would not matter, and this test would show nothing
    for size in SIZES:
        given = [np.random.default_rng([r, size]).standard_normal(size).astype(np.float32) for r in range(n_ranks)]
        bound = (n_ranks - 1) * np.finfo(np.float32).eps * np.abs(given).sum(axis=0, dtype=np.float64)
        exact = np.sum(given, axis=0, dtype=np.float64)
        for folder in folders:
            assert (np.abs(np.load(folder / f"all_reduce_{size}_0.npy") - exact) <= bound).all()


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
        predicted = cs.predict(row["algorithm"], STAR, row["size_B"], n_ranks=4).time
        assert row["time_s"] == pytest.approx(predicted, rel=1e-9), row


def losses(text):
    return re.findall(r"step \d+: loss ([\d.]+)", text)
