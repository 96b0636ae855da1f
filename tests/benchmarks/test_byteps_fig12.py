import json

import pytest

from benchmarks.accuracy import byteps_fig12


def test_the_theory_row_is_the_papers_to_a_tenth_and_the_engine_is_within_three_percent(tmp_path, capsys):
    path = tmp_path / "fig12.json"
    assert byteps_fig12.main(["--json", str(path)]) == 0
    rows = {(r["system"], r["how"]): r["goodput_Gbps"] for r in json.loads(path.read_text())["results"]}
    theory = rows["BytePS", "theory"]
    assert [round(x, 1) for x in theory] == [51.4, 56.2, 61.1, 65.9, 70.7, 75.5, 80.4, 85.2, 90.0]
    assert rows["BytePS", "flow"] == pytest.approx(theory, rel=0.03)
    for name in ("all-reduce (ring)", "PS on k machines"):
        wanted = [x for x in rows[name, "theory"] if x is not None]
        assert [x for x in rows[name, "flow"] if x is not None] == pytest.approx(wanted, rel=0.03)
    assert all(m < t for m, t in zip(rows["BytePS", "measured"], theory, strict=True))
    assert "figure 12" in capsys.readouterr().out
