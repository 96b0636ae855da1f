"""The title of an exchange says what its size follows from: tokens, their values, and experts, also by default."""

import pytest

from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve
from commsim.report.titles import title_of


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "16 tokens of 7168 fp8 values a rank to 8 of 256 experts"),
        (":tokens=1,hidden=4096,top_k=2,precision=bf16", "1 token of 4096 bf16 values a rank to 2 of 256 experts"),
        (":n_experts=32", "16 tokens of 7168 fp8 values a rank to 8 of 32 experts"),
    ],
)
def test_the_title_names_tokens_values_and_experts(given, told):
    solution = solve(scenario_of(network="star:n_hosts=16", collective=f"ep_dispatch{given}"), [])
    assert told in title_of(solution)


def test_other_collectives_have_no_such_phrase():
    solution = solve(scenario_of(network="star:n_hosts=4", collective="ring_all_reduce"), [2**20])
    assert not any("token" in phrase for phrase in title_of(solution))
