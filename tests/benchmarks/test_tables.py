import dataclasses
import inspect

import pytest

from benchmarks.house import tables
from collectives import COLLECTIVES
from topologies import TOPOLOGIES


@pytest.mark.parametrize("path", tables.pages(), ids=lambda path: path.name)
def test_the_rows_of_the_page_are_up_to_date(path):
    assert not tables.stale_rows(path), "run: python -m benchmarks.house.tables"
    assert len(tables.page(path).splitlines()) >= len(path.read_text(encoding="utf-8").splitlines())


def test_every_collective_has_one_row_with_its_cost():
    rows = tables.collective_rows()[1:]
    assert sorted(row[1].split("`")[1] for row in rows) == list(COLLECTIVES)
    for row in rows:
        name = row[1].split("`")[1]
        assert row[0] == COLLECTIVES[name].metadata["operation"]
        assert "S" in row[3]
        assert "second" not in row[3]
    ring = next(row for row in rows if "`ring_all_reduce`" in row[1])
    assert ring[3] == "`2(p-1)(o + L + S/(pB)) + (p-1) gamma S/p`"


def test_every_topology_has_one_row_with_its_parameters_and_what_is_built():
    rows = tables.builder_rows(TOPOLOGIES)[1:]
    assert [row[0] for row in rows] == [f"`{name}`" for name in TOPOLOGIES]
    for row, name in zip(rows, TOPOLOGIES, strict=True):
        for key, parameter in TOPOLOGIES[name].parameters.items():
            assert (f"**{key}**" in row[2]) == (parameter.default is inspect.Parameter.empty)
        assert len(row[3]) > 20
    fat_tree = next(row for row in rows if row[0] == "`fat_tree`")
    assert fat_tree[2].startswith("**k**, bandwidth=100Gbps, latency=500ns, oversubscription")
    assert "`3k^3/2` links" in fat_tree[3]


def test_a_page_that_is_out_of_date_is_named_and_left_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tables, "DOCS", tmp_path)
    marks_of = {"collectives": ["collectives"], "topologies": ["topologies", "host types"], "cluster": ["policies"],
                "placement": ["strategies"], "workloads": ["training policies", "training systems"]}  # fmt: skip
    for name, marks in marks_of.items():
        lines = [f"{tables.BEGIN.format(mark)}\nold\n{tables.END.format(mark)}\n" for mark in marks]
        (tmp_path / f"{name}.md").write_text("text before\n" + "".join(lines) + "text after\n")
    before = [path.read_text() for path in tables.pages()]
    assert tables.main(["--check"]) == 1
    assert capsys.readouterr().out.count("out of date: old") == 7
    assert [path.read_text() for path in tables.pages()] == before


def test_a_page_without_marks_is_an_error(tmp_path):
    (tmp_path / "collectives.md").write_text("no marks\n")
    with pytest.raises(ValueError, match="marks of the table 'collectives' are missing"):
        tables.page(tmp_path / "collectives.md")


@pytest.fixture
def few(monkeypatch):
    from benchmarks.house import table_proofs

    some = {"ring_all_gather": COLLECTIVES["ring_all_gather"]}
    monkeypatch.setattr(table_proofs, "COLLECTIVES", some)
    monkeypatch.setattr(table_proofs, "RANKS", range(1, 6))
    monkeypatch.setattr(table_proofs, "TIMED_RANKS", range(1, 6))
    return some


def test_what_the_table_claims_is_proved(few):
    from benchmarks.house.table_proofs import prove

    few["double_tree_all_reduce"] = COLLECTIVES["double_tree_all_reduce"]
    said: list[str] = []
    prove(said.append)
    assert said[0].startswith("ring_all_gather: exact on 1..5 ranks; time off by")
    assert said[1].startswith("double_tree_all_reduce: exact")


def test_a_cost_that_is_not_the_time_is_an_error(few):
    from benchmarks.house.table_proofs import prove
    from commsim.core.errors import CommsimError

    def too_short(n_ranks, size, link):
        return 0.0, 1e-9 * (n_ranks - 1) * size / link.B

    entry = COLLECTIVES["ring_all_gather"]
    few["ring_all_gather"] = dataclasses.replace(entry, metadata={**entry.metadata, "cost": None, "bounds": too_short})
    with pytest.raises(CommsimError, match="ring_all_gather on 2 ranks takes"):
        prove(lambda _: None)
