"""What a policy of the user's may grant: anything else is one line, and was a traceback, an endless run or no error."""

import pytest

from commsim.placement.clusters.policy import POLICIES

EXAMPLES = "job,submit_s,gpus,iterations,iter_time_ms\na,0,4,10,1000\nb,0,2,30,1000\n"
CLUSTER = '[topology]\nspec = "star:n_hosts=2"\n[hosts]\ngpus = 4\n'
POLICY = """
from commsim.placement.clusters.policy import Grant, View, policy

ENDED = []

@policy(INTERVAL)
def own(view: View) -> list[Grant]:
    s = view.states[0]
    return GRANTS
"""


@pytest.fixture
def words(tmp_path, forgets):
    forgets(POLICIES)

    def written(grants, interval=""):
        (tmp_path / "c.toml").write_text(CLUSTER)
        (tmp_path / "trace.csv").write_text(EXAMPLES)
        (tmp_path / "own.py").write_text(POLICY.replace("GRANTS", grants).replace("INTERVAL", interval))
        return "cluster", "run", tmp_path / "c.toml", "--trace", tmp_path / "trace.csv", "--policy", tmp_path / "own.py"

    return written


@pytest.mark.parametrize(
    ("grants", "message"),
    [
        ("None", "returns a list of grants, got None"),
        ("[s]", "returns a list of grants"),
        *(
            (f"[Grant(s, {n})]", f"own grants a {n} GPUs, which must be a whole number 1..8")
            for n in ("0", "-1", "9", "1.5", "'4'", "None", "True")
        ),
        ("[Grant('a', 1)]", "the state of a grant is one of view.states, got 'a'"),
        ("[Grant(s.job, 1)]", "the state of a grant is one of view.states, got TraceJob"),
        ("ENDED.append(s) or [Grant(ENDED[0], 4)]", "is one of view.states, got a, which has ended"),
        ("[Grant(s, 4), Grant(s, 4)]", "own grants a GPUs twice"),
        (
            "[Grant(s, 4, gpu_type='h100')]",
            "own grants a GPUs of gpu_type 'h100'; known: none, [hosts] of --assume",
        ),
        ("[Grant(s, 4, order='near')]", "own grants a GPUs of order 'near'; known: demand, fragments, packed"),
        ("[Grant(s, 4, beside='b')]", "beside of a grant is one of view.states, got 'b'"),
        ("[]", "a cannot get the 4 GPUs that it wants from own"),
        ("[Grant(s, 4, beside=view.states[1])]", "a cannot get the 4 GPUs beside b that own grants it"),
    ],
)
def test_wrong_grants_are_refused_in_one_line(commsim, words, grants, message):
    assert message in commsim.refuses(*words(grants))


@pytest.mark.parametrize("interval", ["-1.0", "1e-9", "float('inf')", "float('nan')", "'60'", "True"])
def test_rounds_that_come_too_often_or_never_are_refused(commsim, words, interval):
    """A negative interval was an endless replay."""
    line = commsim.refuses(*words("[]", f"interval={interval}"))
    assert "own.py, line 6: interval of a policy is 0, or 0.001 s or more, got" in line


@pytest.mark.parametrize("n", ["4", "8", "__import__('numpy').int64(2)"])
def test_a_policy_is_not_asked_once_all_jobs_have_ended(commsim, words, n):
    """It was, with no states, so that `view.states[0]` raised IndexError at the end of a replay."""
    rows = commsim.results(*words(f"[Grant(s, {n})]"))["results"]
    assert (rows[0]["policy"], rows[0]["jobs"]) == ("own", 2)
