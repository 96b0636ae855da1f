import json

import numpy as np
import pytest

from commsim.cli import main

STAR = "star:n_hosts=16,bandwidth=100Gbps,latency=1us"


@pytest.mark.parametrize(
    "spec",
    [
        "omnireduce:density=0.1,block=256,n_aggregators=8,pattern=random",
        "sparcml_ssar:density=0.01",
        "agsparse:density=0.01",
    ],
)
def test_the_contract_for_scripts_holds(spec, tmp_path, capsys):
    path = tmp_path / "result.json"
    assert (
        main(
            [
                "run",
                "--collective",
                spec,
                "--topology",
                STAR,
                "--ranks",
                "8",
                "-b",
                "1M",
                "-e",
                "1M",
                "--json",
                str(path),
            ]
        )
        == 0
    )
    (row,) = json.loads(path.read_text())["results"]
    assert row["bytes_on_wire"] > row["max_link_bytes"] > 0
    out = capsys.readouterr().out
    assert "are drawn: pattern random" in out
    assert "of the union" in out


def test_gradients_from_a_file_set_the_size_which_is_said(tmp_path, capsys):
    np.save(tmp_path / "g.npy", np.eye(4, 100, dtype=np.float32))
    spec = f"agsparse:gradients={tmp_path / 'g.npy'}"
    assert main(["run", "--collective", spec, "--topology", STAR, "--ranks", "4"]) == 0
    out = capsys.readouterr().out
    assert "no effect, the size is that of the gradients" in out
    assert "400 B: density 0.01, of the union 0.04, densification 4" in out


@pytest.mark.parametrize("spec", ["omnireduce:density=1.5", "omnireduce:density=0.1,n_aggregators=9", "zen:density=0"])
def test_what_makes_no_sense_ends_with_one_line_and_code_2(spec, capsys):
    assert main(["run", "--collective", spec, "--topology", STAR, "--ranks", "8"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
