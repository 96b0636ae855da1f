import json

import pytest

from benchmarks.omnireduce_published import by_block, by_density, by_ranks, main, through_host, union_rows


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


def test_the_law_of_messages_meets_all_block_sizes_within_3_percent():
    assert max(abs(row.error) for row in by_block()) < 0.03


def test_through_the_host_only_the_sparse_end_is_met_and_the_rest_is_shown_as_it_is():
    errors = [row.error for row in through_host()]
    assert [abs(error) < 0.05 for error in errors[-2:]] == [True, True]
    assert errors[0] == pytest.approx(-0.217, abs=0.005)


def test_the_union_of_drawn_blocks_is_that_of_the_formula():
    for _, expected, drawn in union_rows():
        assert drawn == pytest.approx(expected, abs=0.005)


def test_the_table_is_printed_and_written(tmp_path, capsys):
    assert main(["--json", str(tmp_path / "rows.json")]) == 0
    assert "GPU-direct, density 0.01" in capsys.readouterr().out
    written = json.loads((tmp_path / "rows.json").read_text())["results"]
    assert {"what", "published", "ours", "error", "how", "source"} <= written[0].keys()
