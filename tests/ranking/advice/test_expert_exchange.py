"""Which mode of an exchange of experts pays, and from which number of tokens."""

import json

import pytest

from commsim.cli import main
from commsim.core.errors import InputError
from commsim.prediction.inputs import load_network
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve
from commsim.ranking.advice.expert_exchange import LAST, MODES, advise_expert_exchange


def time(network, tokens, mode, more=""):
    return sum(
        solve(scenario_of(f"ep_{name}:tokens={tokens},mode={mode}{more}", network), [1.0]).results[0].time
        for name in ("dispatch", "combine")
    )


def test_normal_mode_pays_from_the_fewest_tokens_at_which_it_is_faster():
    network = load_network("dgx-h100")
    found = advise_expert_exchange(network, "n_experts=64")
    more = ",n_experts=64,library=deepep"
    assert found.rows[-1]["tokens"] == LAST
    at, below = ({m: time(network, found.normal_from - less, m, more) for m in MODES} for less in (0, 1))
    assert at["normal"] <= at["low_latency"]
    assert below["normal"] > below["low_latency"]


def test_the_command_line_gives_the_times_of_run(tmp_path, capsys):
    out = tmp_path / "advice.json"
    words = ["advise", "--topology", "star:n_hosts=4", "--operation", "expert_exchange", "--json", str(out)]
    assert main(words) == 0
    row = json.loads(out.read_text())["results"][4]
    network = load_network("star:n_hosts=4")
    assert [row[f"{mode}_s"] for mode in MODES] == [time(network, row["tokens"], mode) for mode in MODES]
    assert main([*words, "--exchange", "tokens=3"]) == 2
    assert "leave out tokens=3" in capsys.readouterr().err
    assert main([*words, "--size", "1M"]) == 2
    assert "--size is of a tensor" in capsys.readouterr().err


def test_what_is_tried_may_not_be_given():
    with pytest.raises(InputError, match="leave out mode=normal"):
        advise_expert_exchange(load_network("star:n_hosts=4"), "mode=normal")
