"""Errors of predictions: drawn ones give back what they were drawn with; false alarms are as asked."""

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
from benchmarks.nccl_tables.error_shape import Score, classes_of, likeness_of, written_errors
from commsim.nccl.error_model import read_errors
from commsim.nccl.intervals import EVERY

SIZES = 2.0 ** np.arange(26, 36)


def drawn(n_operators, near=0.6, factor=0.3, octaves=2.0, width=0.1, seed=3, n_machines=2):
    """Return tables of several operators whose errors are normal, and as alike as given."""
    rng = np.random.default_rng(seed)
    apart = np.log2(SIZES)[:, None] - np.log2(SIZES)[None, :]
    covariance = factor + near * np.exp(-((apart / octaves) ** 2) / 2)
    np.fill_diagonal(covariance, 1.0)
    lower, scores = np.linalg.cholesky(covariance), []
    for k in range(n_operators):
        for t in range(4):
            logs = width * (lower @ rng.normal(size=len(SIZES)))
            scores += [Score(f"o{k}", f"o{k}_{t}", "roce", "large", float(log), float(size), n_machines)
                       for log, size in zip(logs, SIZES, strict=True)]  # fmt: skip
    return scores


def usual(widths):
    """Return the mean of some widths."""
    return sum(one.scale * one.share for one in widths)


def test_what_errors_were_drawn_with_is_found():
    alike, independent = (likeness_of(drawn(12, near, factor)) for near, factor in ((0.6, 0.3), (0.1, 0.0)))
    assert usual(alike.near) > 1.5 * usual(independent.near)
    assert usual(independent.large) > 0.07 > 1.5 * usual(alike.large)
    errors = classes_of(drawn(12))["roce", "few", "rows", "large"]
    assert (errors.n_operators, errors.n_tables) == (12, 48)
    assert errors.scale == pytest.approx(0.1, rel=0.2)
    assert errors.middle == pytest.approx(0.0, abs=0.03)


def test_operators_that_are_predicted_well_are_found_beside_those_that_are_not():
    """Of operators with a tenth of the others' errors, more have the least widths than of operators that are alike."""
    mixed = likeness_of([*drawn(8, width=0.01), *(s._replace(operator="x" + s.operator) for s in drawn(4, width=0.15))])
    same = likeness_of(drawn(12))
    assert mixed.near[0].share > 0.4 > same.near[0].share
    assert mixed.large[0].share > 0.5


def test_a_new_operator_is_less_sure_the_fewer_are_known():
    few, many = (classes_of(drawn(n))["roce", "few", "rows", "large"] for n in (2, 12))
    assert few.degrees < many.degrees
    assert few.exceeded(0.01) - few.middle > many.exceeded(0.01) - many.middle


def test_a_kind_of_one_operator_leans_on_the_others_of_its_span():
    """One operator that happens to have no spread does not make a kind without errors."""
    alone = [Score("x", "x_1", "slingshot", "large", 0.2, float(size), 2) for size in SIZES]
    found = classes_of([*drawn(8), *alone])
    assert found["slingshot", "few", "rows", "large"].scale > 0.05
    assert 0 < found["slingshot", "few", "rows", "large"].middle < 0.2
    inside = classes_of([*drawn(8, width=0.3), *drawn(8, width=0.03, n_machines=1)])
    assert inside["roce", "inside", "rows", "large"].scale < 0.1 < inside["roce", "few", "rows", "large"].scale


def test_many_machines_lean_on_few_of_their_kind_by_numbers_of_operators():
    """Two operators that are three times as far out move the width of many machines part of the way; twenty, most."""
    few = drawn(8, width=0.1)
    two, twenty = (
        classes_of([*few, *drawn(n, width=0.3, seed=4, n_machines=32)])["roce", "many", "rows", "large"]
        for n in (2, 20)
    )  # fmt: skip
    alone = classes_of(few)["roce", "few", "rows", "large"]
    assert alone.scale < two.scale < 0.2 < twenty.scale
    assert two.degrees == alone.degrees + 2


def test_the_file_is_read_as_it_is_written():
    classes, likeness = classes_of(drawn(4)), likeness_of(drawn(4))
    read, alike = read_errors(written_errors(classes, likeness))
    assert (read.keys(), alike) == (classes.keys(), likeness)
    assert (EVERY, "many", "middles", "small") in read
    assert read["roce", "few", "rows", "large"] == pytest.approx(classes["roce", "few", "rows", "large"], abs=1e-3)


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
