"""Candidates of the client's own in one request: ranked as the same placements sent one by one, and reserved."""

import pytest
from place_service import row, running

OWN = {"near": {"a": ["h0x2", "h1x2"]}, "far": {"a": ["h0-1x1", "h4-5x1"]}}
ALWAYS = {"period": 100.0, "up": 100.0}  # the link of a rack has 50 Gb/s, of which a job sends 40


@pytest.fixture
def service():
    with running() as service:
        yield service


def place(service, *jobs, **more):
    return service.ask("POST", "/place", {"jobs": list(jobs), **more})


@pytest.mark.parametrize("more", [{}, {"check": True}, {"rank_by": "min"}])
def test_they_are_ranked_as_when_each_is_sent_alone(service, more):
    old = row("old", 4, **ALWAYS, placement=["h2x2", "h6x2"], start_ms=0)
    assert service.ask("POST", "/jobs", {"jobs": [old]})[0] == 200
    status, answer = place(service, row("a", 4, **ALWAYS), placements=OWN, **more)
    assert status == 200
    assert [one["generator"] for one in answer["candidates"]] == ["near", "far"]
    assert [one["cost"]["own"]["a"] for one in answer["candidates"]] == [1.0, 1.6]  # 80 of 50 Gb/s
    for one in answer["candidates"]:
        alone = place(service, row("a", 4, **ALWAYS, placement=OWN[one["generator"]]["a"]), **more)[1]["candidates"][0]
        assert {key: one[key] for key in ("placement", "cost", "predicted_iteration_ms", "links")} == {
            key: alone[key] for key in ("placement", "cost", "predicted_iteration_ms", "links")
        }


def test_without_known_jobs_and_with_a_job_that_has_a_place(service):
    fixed = row("b", 4, **ALWAYS, placement=["h2x2", "h6x2"])
    status, answer = place(service, row("a", 4, **ALWAYS), fixed, placements=OWN)
    assert status == 200
    assert [(one["generator"], one["slowdown"]) for one in answer["candidates"]] == [("near", 1.0), ("far", 1.6)]
    assert [one["generator"] for one in place(service, row("a", 4), placements=OWN)[1]["candidates"]] == ["near", "far"]


@pytest.mark.parametrize("known", [False, True])
def test_the_best_of_them_is_reserved(service, known):
    if known:
        service.ask("POST", "/jobs", {"jobs": [row("old", 4, **ALWAYS, placement=["h2x2", "h6x2"])]})
    status, answer = place(service, row("a", 4, **ALWAYS), placements=OWN, reserve=True)
    assert (status, answer["reserved"]["jobs"]) == (200, ["a"])
    placed = {one["job"]: one["placed"] for one in service.ask("GET", "/jobs")[1]["jobs"]}
    assert placed["a"] == answer["candidates"][0]["placement"]["a"]


def test_a_known_job_may_stay_or_go(service):
    service.ask("POST", "/jobs", {"jobs": [row("a", 4, **ALWAYS, placement=["h2x2", "h6x2"])]})
    answer = place(service, "a", placements={"stay": {"a": ["h2x2", "h6x2"]}, "go": {"a": ["h2x2", "h3x2"]}})[1]
    assert sorted(one["generator"] for one in answer["candidates"]) == ["go", "stay"]
    assert answer["notes"] == []


def test_a_reservation_does_not_leave_a_job_that_has_to_be_moved(service):
    """The answer had it elsewhere, and the service knew it on the drained host."""
    service.ask("POST", "/jobs", {"jobs": [row("old", 4, placement=["h2x2", "h6x2"])]})
    status, answer = place(service, row("a", 4), drain=["h2"], reserve=True)
    assert (status, "job old has to be moved" in answer["error"]) == (400, True)
    status, answer = place(service, "old", row("a", 4), drain=["h2"], reserve=True)
    assert (status, answer["reserved"]["jobs"]) == (200, ["old", "a"])
    assert "h2" not in {node for one in service.ask("GET", "/jobs")[1]["jobs"] for node in one["placed"]}


@pytest.mark.parametrize("more", [{}, {"rank_by": "min"}])
def test_one_that_is_taken_is_named_and_the_others_are_ranked(service, more):
    service.ask("POST", "/jobs", {"jobs": [row("old", 4, placement=["h2x2", "h6x2"])]})
    own = {"taken": {"a": ["h1x2", "h2x2"]}, **OWN}
    status, answer = place(service, row("a", 4, **ALWAYS), placements=own, **more)
    assert (status, [one["generator"] for one in answer["candidates"]]) == (200, ["near", "far"])
    assert list(answer["refused"]) == ["taken"]
    assert "placements.taken: job a asks 2 GPUs of h2, which has 2, 0 of them free" in answer["refused"]["taken"]
    assert answer["candidates"] == place(service, row("a", 4, **ALWAYS), placements=OWN, **more)[1]["candidates"]
    status, answer = place(service, row("a", 4), placements=own, reserve=True, **more)
    assert (status, answer["reserved"]["jobs"]) == (200, ["a"])
    own = {"taken": own["taken"], "wrong": {"a": ["h1x2", "zz"]}}
    assert place(service, row("a", 4), placements=own, **more)[0] == 400


def test_an_address_says_which_methods_it_takes(service):
    status, answer = service.ask("GET", "/place")
    assert (status, answer["error"]) == (405, "GET /place: Method Not Allowed; it takes POST")


@pytest.mark.parametrize(
    ("placements", "more", "status", "message"),
    [
        (OWN, {"candidates": 3}, 400, "candidates has no effect beside placements"),
        (OWN, {"generators": ["packed"]}, 400, "generators has no effect beside placements"),
        ({"x": {"b": ["h0x4"]}}, {}, 400, "placements.x.b is not a field here; known: a"),
        ({"x": {}}, {}, 400, "placements.x.a is missing: 4 nodes, one per GPU"),
        ({"x": {"a": ["h0x2"]}}, {}, 400, "placements.x.a must name 4 nodes"),
        ({"x": {"a": ["h0x4"]}}, {}, 400, "placements.x: job a asks 4 GPUs of h0, which has 2"),
        ({"x": {"a": ["h2x2", "h3x2"]}}, {}, 409, "placements.x: job a asks 2 GPUs of h2"),
        ({"x": {"a": ["zz", "h3x3"]}}, {}, 400, "placements.x: job a is placed on zz"),
        (OWN, {"drain": ["h0"]}, 409, "placements.near: job a asks 2 GPUs of h0"),
        (OWN, {"drain": ["h2"]}, 400, "job old has to be moved: name it in jobs, and its nodes in placements"),
        ({}, {}, 400, "placements"),
    ],
)
def test_what_is_wrong_with_them_is_named(service, placements, more, status, message):
    service.ask("POST", "/jobs", {"jobs": [row("old", 4, placement=["h2x2", "h6x2"])]})
    got, answer = place(service, row("a", 4), placements=placements, **more)
    assert (got, message in answer["error"]) == (status, True), answer


RUNS = {"period": 200.0, "up": 140.0, "rate": 50.0}  # 140 and 80 of 200 ms are 220 ms of the rack's link


@pytest.mark.parametrize("start", [{}, {"start_ms": 0.0}])
@pytest.mark.parametrize("known", [False, True])
def test_what_a_new_job_costs_does_not_depend_on_how_the_running_ones_are_told(service, known, start):
    """Jobs of the request that have a place were new beside `placements`, and beside jobs that are known."""
    runs = row("runs", 4, **RUNS, placement=["h0x2", "h4x2"], **start)
    if known:
        service.ask("POST", "/jobs", {"jobs": [row("far", 2, placement=["h8", "h9"])]})
    new = row("new", 4, 200.0, 80.0, 50.0)
    own = {"far": {"new": ["h1x2", "h5x2"]}, "near": {"new": ["h1x2", "h2x2"]}}
    for more in ({"placements": own}, {"generators": ["packed", "random"], "candidates": 6}):
        status, answer = place(service, new, runs, **more)
        assert status == 200
        for one in answer["candidates"]:
            assert list(one["cost"]["own"]) == ["new"]
            assert sorted(one["placement"]) == sorted(one["shifts_ms"]) == ["new", "runs"]
    costs = {one["generator"]: one["cost"] for one in place(service, new, runs, placements=own)[1]["candidates"]}
    assert costs["far"]["own"]["new"] == pytest.approx(1.1)
    assert costs["far"]["added"] == pytest.approx({"runs": 0.1})
    assert (costs["near"]["total"], costs["near"]["added"]) == (0.0, {})


def test_running_jobs_of_the_request_are_reserved_where_they_are(service):
    service.ask("POST", "/jobs", {"jobs": [row("far", 2, placement=["h8", "h9"])]})
    runs = row("runs", 4, **RUNS, placement=["h0x2", "h4x2"], start_ms=30)
    answer = place(service, row("new", 4), runs, placements={"x": {"new": ["h1x2", "h2x2"]}}, reserve=True)[1]
    known = {one["job"]: one for one in service.ask("GET", "/jobs")[1]["jobs"]}
    assert answer["reserved"]["jobs"] == ["new", "runs"]
    assert (known["runs"]["placed"], known["runs"]["start_ms"]) == (["h0", "h0", "h4", "h4"], 30)
    assert known["new"]["placed"] == ["h1", "h1", "h2", "h2"]


def test_running_jobs_of_the_request_take_no_gpus_of_others(service):
    service.ask("POST", "/jobs", {"jobs": [row("far", 2, placement=["h0", "h1"])]})
    status, answer = place(service, row("new", 4), row("runs", 4, placement=["h0x2", "h4x2"]))
    assert (status, "job runs asks 2 GPUs of h0" in answer["error"]) == (409, True)


def test_the_ends_over_hashes_are_of_one_kind_where_there_is_one_path(service):
    """The least cost was an estimate, beside a cost that was simulated."""
    service.ask("POST", "/jobs", {"jobs": [
        row("a", 4, 200.0, 105.0, 50.0, placement=["h1x2", "h5x2"], start_ms=92),
        row("b", 4, 150.0, 73.0, 40.0, placement=["h8x2", "h2x2"], start_ms=139),
    ]})  # fmt: skip
    own = {"x": {"new": ["h1", "h3", "h0x2"]}, "y": {"new": ["h0x2", "h6x2"]}}
    service.ask("POST", "/jobs", {"jobs": [row("a", 2, 200.0, 105.0, 50.0, placement=["h1", "h5"], start_ms=92)]})
    answer = place(service, row("new", 4, 200.0, 62.0, 30.0), placements=own)[1]
    assert {one["prediction"] for one in answer["candidates"]} == {"simulation"}
    for one in answer["candidates"]:
        assert one["cost"]["total_best"] == one["cost"]["total_worst"] == one["cost"]["total"]


def test_placements_of_no_job_are_refused(service):
    status, answer = place(service, row("a", 2, placement=["h0x2"]), placements={"x": {"a": ["h1x2"]}})
    assert (status, "placements has no effect: all jobs have a placement" in answer["error"]) == (400, True)
