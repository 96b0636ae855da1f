import json
import statistics

import pytest

from benchmarks.accuracy.omnireduce_published import (
    by_block,
    by_density,
    by_protocol,
    by_ranks,
    main,
    through_host,
    union_rows,
)


@pytest.mark.parametrize("how", ["two constants", "flow engine"])
def test_two_constants_meet_all_densities_up_to_a_fifth_within_5_percent(how):
    rows = [row for row in by_density() if row.how == how]
    assert len(rows) >= 6
    assert max(abs(row.error) for row in rows) < 0.05


def test_a_third_constant_meets_all_nine_within_5_percent():
    rows = [row for row in by_density() if row.how == "three constants"]
    assert len(rows) == 9
    assert max(abs(row.error) for row in rows) < 0.05


def test_dense_rings_grow_as_measured():
    assert max(abs(row.error) for row in by_ranks()) < 0.05


@pytest.mark.slow
def test_the_protocol_meets_blocks_that_no_constant_was_taken_from():
    errors = [abs(row.error) for row in by_block() if "density 1," not in row.what]
    assert statistics.median(errors) < 0.05
    assert max(errors) < 0.08
    others = [abs(row.error) for row in by_block() if row.what.startswith(("blocks of 64", "blocks of 128"))]
    assert max(others) < 0.05


def test_gpu_direct_is_met_without_a_constant_of_its_own_but_the_fixed_part():
    errors = {row.what: abs(row.error) for row in by_protocol()}
    assert errors["GPU-direct, 8 workers, density 1, ms"] < 0.05
    assert statistics.median(error for what, error in errors.items() if "8 workers" in what) < 0.05


@pytest.mark.slow
def test_through_the_host_all_densities_are_met_within_15_percent():
    errors = [abs(row.error) for row in through_host()]
    assert max(errors) < 0.15
    assert statistics.median(errors) < 0.07


def test_the_union_of_drawn_blocks_is_that_of_the_formula():
    for _, expected, drawn in union_rows():
        assert drawn == pytest.approx(expected, abs=0.005)


@pytest.mark.slow
def test_the_table_is_printed_and_written(tmp_path, capsys):
    assert main(["--json", str(tmp_path / "rows.json")]) == 0
    assert "GPU-direct, density 0.01" in capsys.readouterr().out
    written = json.loads((tmp_path / "rows.json").read_text())["results"]
    assert {"what", "published", "ours", "error", "how", "source"} <= written[0].keys()
