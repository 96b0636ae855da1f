"""The bound of an exchange of experts with a given routing."""

import pytest

from commsim.cli import main
from commsim.core.errors import InputError
from commsim.prediction.read import scenario_of
from commsim.ranking.synthesis.expert_exchange import bound_of_routing

BYTES = 7392  # of a token of 7,168 values in FP8 with scales


def test_the_bound_is_the_bytes_of_a_file_over_the_port_that_they_need(tmp_path):
    path = tmp_path / "routing.csv"
    path.write_text("token,expert\n" + "".join(f"{t},{3 if t < 6 else 0}\n" for t in range(12)))  # 2 of a rank's 3 stay
    scenario = scenario_of("", "star:n_hosts=4,bandwidth=8Gbps,latency=0s", overhead="0us")
    found = bound_of_routing(scenario, "ep_dispatch", f"tokens=3,n_experts=4,top_k=1,routing={path}")
    # ranks 0 and 1 send three tokens each to rank 3; ranks 2 and 3 three each to rank 0
    assert found.bound == pytest.approx(6 * BYTES / 1e9)
    assert found.times["normal"] == pytest.approx(found.bound)
    back = bound_of_routing(scenario, "ep_combine", f"tokens=3,n_experts=4,top_k=1,routing={path}")
    assert back.bound == pytest.approx(6 * 14336 / 1e9)


def test_a_token_for_several_ranks_of_a_machine_crosses_once_in_the_bound():
    scenario = scenario_of("", "dgx-h100@star:machines=2,bandwidth=100Gbps", overhead="0us")
    found = bound_of_routing(scenario, "ep_dispatch", "tokens=32,n_experts=16,top_k=16")  # all experts: one copy each
    assert found.bound == pytest.approx(8 * 32 * BYTES / (8 * 12.5e9), rel=0.02)  # and a latency
    assert found.bound < found.times["normal"] < found.times["low_latency"]


def test_what_makes_no_sense_is_refused(capsys):
    with pytest.raises(InputError, match="leave out mode=normal"):
        bound_of_routing(scenario_of("", "star:n_hosts=4", overhead="0us"), "ep_dispatch", "mode=normal")
    words = ["synthesize", "--topology", "star:n_hosts=4", "--exchange", "tokens=3"]
    assert main([*words, "--operation", "all_gather"]) == 2
    assert "--exchange goes with" in capsys.readouterr().err
    assert main([*words, "--operation", "ep_dispatch", "-o", "x.npz"]) == 2
    assert "no schedule is made" in capsys.readouterr().err
