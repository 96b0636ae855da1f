"""Shape of the errors of predictions: drawn errors give back what they were drawn with; false alarms are as asked."""

import numpy as np
import pytest

from benchmarks.diagnosis.floors import (
    beside_ours,
    false_alarms,
    left_out,
    network_of,
    read_published,
    size_of,
)
from benchmarks.nccl_tables.error_shape import shape_of
from benchmarks.nccl_tables.intervals import Score
from commsim.nccl.error_model import error_model
from commsim.nccl.intervals import EVERY

SIZES = 2.0 ** np.arange(24, 34)


def drawn(n_operators, correlation=0.8, octaves=1.5, degrees=4.0, seed=3):
    """Return tables of several operators whose errors are Student's t, and correlated as given."""
    rng = np.random.default_rng(seed)
    apart = np.log2(SIZES)[:, None] - np.log2(SIZES)[None, :]
    covariance = correlation * np.exp(-((apart / octaves) ** 2) / 2)
    np.fill_diagonal(covariance, 1.0)
    factor, scores = np.linalg.cholesky(covariance), []
    for k in range(n_operators):
        for t in range(4):
            heavy = np.sqrt(rng.chisquare(degrees, len(SIZES)) / degrees)
            logs = 0.1 * (factor @ rng.normal(size=len(SIZES))) / heavy
            scores += [Score(f"o{k}", f"o{k}_{t}", "roce", "large", float(log), float(size))
                       for log, size in zip(logs, SIZES, strict=True)]  # fmt: skip
    return scores


def test_what_errors_were_drawn_with_is_found():
    found, independent = (shape_of(drawn(8, correlation=part)) for part in (0.8, 0.0))
    assert 2 <= found.degrees <= 8
    beside = [one.correlation * np.exp(-(one.octaves**-2) / 2) for one in (found, independent)]  # one octave apart
    assert beside == pytest.approx([0.8 * np.exp(-(1.5**-2) / 2), 0.0], abs=0.15)


@pytest.mark.slow
def test_as_many_sizes_of_operators_left_out_are_below_floors_as_is_asked():
    rows, logs = left_out(drawn(8))
    assert len(rows) == 8 * 4 * len(SIZES)
    assert len(logs) == 32
    for rate in (0.05, 0.1):
        assert false_alarms(rows, rate)[0] == pytest.approx(rate, abs=0.04)
        assert false_alarms(logs, rate)[0] == pytest.approx(rate, abs=0.08)


def test_published_words_become_machines_and_sizes(tmp_path):
    assert network_of("ND96isr H100 v5", "1") == "ndv5"
    assert network_of("BM.GPU.H100.8 pair scan", "2") == "hgx-h100@star:machines=2"
    assert network_of("per 400G NIC", "") == ""
    assert (size_of("1G-16G avg"), size_of("peak"), size_of("128M")) == ("16GiB", "16GiB", "128MiB")
    path = tmp_path / "floors.csv"
    path.write_text(
        "machine,nodes,gpus,op,size,floor_or_expected,value_GBps,source\n"
        "ND96isr H100 v5,1,8,all_reduce,16G,floor,100,x\nper 100G NIC,,,all_reduce,peak,expected,12,y\n"
    )
    (row,) = beside_ours(read_published(path), 0.01)
    assert row[-1] == "far below ours"


def test_every_kind_has_errors():
    assert error_model(EVERY).scale(2**30) > error_model("machine").scale(2**30)
