import json

from benchmarks.accuracy import sprayed_collectives

ROW = {"time_s": 3e-4, "flow_s": 2e-4, "bound_s": 1e-4, "worst_message": 7.0, "sent_again": 5}


def test_a_table_has_the_sizes_of_its_file(tmp_path, monkeypatch, capsys):
    path = tmp_path / "rows.json"
    cases = [["ring_all_reduce", "1:1", "adaptive", "whole", size, 0] for size in (2.0**24, 2.0**18)]
    path.write_text(json.dumps({"rows": [{"case": case, **ROW} for case in cases]}))
    monkeypatch.setattr("sys.argv", ["table", "--table", str(path)])
    assert sprayed_collectives.main() == 0
    shown = capsys.readouterr().out
    assert shown.index("256 KiB:") < shown.index("16 MiB:")
    assert shown.count("| 1:1 ring_all_reduce | adaptive | 1.50, 3.0, 7.0, 5 |") == 2
