"""The service's answers, over HTTP."""

import contextlib
import http.client
import json
import re
import statistics
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
from place_service import LIMIT_S, pod, row, running, small_cluster

from commsim.placement.cluster import read_cluster
from commsim.placement.service.job_store import JobStore

NAMES = [f"h{i}" for i in range(12)]


@pytest.fixture(scope="module")
def shared():
    with running() as service:
        yield service


@pytest.fixture
def service(shared):
    yield shared
    for name in list(shared.service.state.jobs):
        assert shared.ask("DELETE", f"/jobs/{name}")[0] == 200


def args(*words, names=NAMES, **more):
    return {"Pod": pod(*words, **more), "Nodes": None, "NodeNames": names}


def points(answer):
    return {one["Host"]: one["Score"] for one in answer}


def test_it_says_that_it_is_well(service):
    assert service.ask("GET", "/healthz") == (200, {"ok": True})


def test_it_has_a_page_that_describes_it(service):
    status, page = service.ask("GET", "/openapi.json")
    assert status == 200
    assert set(page["paths"]) == {
        "/filter",
        "/prioritize",
        "/place",
        "/moves",
        "/bind",
        "/jobs",
        "/jobs/{name}",
        "/cluster",
        "/healthz",
        "/metrics",
        "/schema",
        "/",
    }
    (reference,) = page["paths"]["/prioritize"]["post"]["requestBody"]["content"]["application/json"]["schema"].values()
    body = page["components"]["schemas"][reference.rpartition("/")[2]]
    assert set(body["properties"]) == {"Pod", "Nodes", "NodeNames"}


def test_its_first_address_lists_all(service):
    status, answer = service.ask("GET", "/")
    paths = service.ask("GET", "/openapi.json")[1]["paths"]
    assert status == 200
    assert set(answer["addresses"]) == {*paths, "/docs", "/openapi.json"}


def test_a_search_may_have_faults_of_the_network(service):
    job = row("a", 4, placement=["h0", "h0", "h4", "h4"])
    whole = service.ask("POST", "/place", {"jobs": [job], "check": True})[1]
    asked = {"jobs": [job], "check": True, "scale": ["link:h0:*=0.1"]}
    status, slow = service.ask("POST", "/place", asked)
    assert status == 200
    times = [answer["candidates"][0]["predicted_iteration_ms"]["a"] for answer in (whole, slow)]
    assert times[1] > times[0]
    status, cut = service.ask("POST", "/place", {"jobs": [row("b", 2)], "fail": ["link:h0:leaf0"]})
    assert status == 200
    assert any("cut off, no job is placed there: h0" in note for note in cut["notes"])
    status, wrong = service.ask("POST", "/place", {"jobs": [job], "fail": ["link:nowhere:h0"]})
    assert (status, "nowhere" in wrong["error"]) == (400, True)


def test_the_jobs_that_are_listed_have_the_start_that_they_keep(service):
    job = {**row("a", 2, placement=["h0", "h0"]), "start_ms": 12.5}
    answers = [service.ask("POST", "/jobs", {"jobs": [job, row("b", 2)]}), service.ask("GET", "/jobs")]
    for status, answer in answers:
        assert status == 200
        assert [one.get("start_ms") for one in answer["jobs"]] == [12.5, None]


def test_a_job_of_the_shortest_times_is_known_and_can_be_sent_again(service):
    """Its times were rounded to 0, which no answer may hold: 500 for every later question about jobs."""
    phases = [{"offset_ms": 0.0, "dur_ms": 1e-300, "rate_Gbps": 1e-300}]
    short = row("short", 2) | {"iter_time_ms": 1e-290, "phases": phases}
    assert service.ask("POST", "/jobs", {"jobs": [short]})[0] == 200
    (known,) = service.ask("GET", "/jobs")[1]["jobs"]
    assert known["iter_time_ms"] == pytest.approx(1e-290, rel=1e-12, abs=0)
    assert known["phases"][0]["dur_ms"] == pytest.approx(1e-300, rel=1e-12, abs=0)
    assert service.ask("POST", "/jobs", {"jobs": [known]})[0] == 200


def test_it_gives_the_schemas_of_requests_and_answers(service):
    status, schemas = service.ask("GET", "/schema")
    assert status == 200
    assert {"jobs", "fail", "scale", "candidates"} <= set(schemas["Search"]["properties"])
    assert {"Jobs", "Candidates", "KnownJobs", "Problem"} <= set(schemas)
    job = row("a", 2, placed=["h0"], start_ms=5)
    asked = {"jobs": [job], "candidates": 2}
    jsonschema.validate(asked, schemas["Search"])
    jsonschema.validate([job], schemas["jobs.json"])
    status, answer = service.ask("POST", "/place", asked)
    jsonschema.validate(answer, schemas["Candidates"])
    assert answer["schema"] == 1
    jsonschema.validate(service.ask("POST", "/jobs", {"jobs": [job]})[1], schemas["KnownJobs"])
    phase = job["phases"][0]
    for wrong in (
        {"jobs": []}, {"jobs": [job | {"gpus": -1}]}, {"jobs": [job | {"iter_time_ms": -5}]},
        {"jobs": [job | {"phases": [phase | {"dur_ms": -1}]}]}, {"jobs": [job | {"start_ms": -1}]},
    ):  # fmt: skip
        assert service.ask("POST", "/place", wrong)[0] == 400
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schemas["Search"])


@pytest.mark.parametrize("path", ["/jobs", "/place"])
@pytest.mark.parametrize("several", [False, True])
def test_a_single_job_is_told_the_right_body(service, path, several):
    status, answer = service.ask("POST", path, [row("a", 2)] if several else row("a", 2))
    assert status == 400
    right = answer["error"].partition("the body must be like ")[2]
    assert service.ask("POST", path, json.loads(right))[0] == 200


def shown():
    """Return the exchanges that docs/schedulers.md shows: method, address, body, answer."""
    text = (Path(__file__).parents[3] / "docs" / "schedulers.md").read_text()
    part = text.partition("### Requests and answers")[2].partition("\n### ")[0]
    found = re.findall(r"`(GET|POST|DELETE) (\S+)`(?:(?!\n\n).)*\n\n((?:```json\n.*?```\n+){1,2})", part, re.DOTALL)
    return [(method, path, *re.findall(r"```json\n(.*?)```", blocks, re.DOTALL)) for method, path, blocks in found]


def test_the_documented_exchanges_are_those_of_the_service():
    with running(None) as service:
        asked = set()
        for method, path, *blocks in shown():
            body = json.loads(blocks[0]) if method == "POST" else None
            status, answer = service.ask(method, path, body)
            assert (status, answer) == (200, json.loads(blocks[-1])), (method, path)
            asked.add(path)
    assert asked == {"/", "/cluster", "/jobs", "/jobs/a", "/place", "/filter", "/prioritize", "/healthz"}


def test_its_page_loads_nothing_from_elsewhere(service):
    page = fetched(service, "/docs").decode()
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert {path.rpartition(".")[2] for path in loaded} >= {"js", "css"}
    for path in loaded:
        assert path.startswith("/")
        assert not path.startswith("//")
        assert len(fetched(service, path)) > 100
    assert "://" not in page


def fetched(service, path):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", service.port, timeout=LIMIT_S)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 200, path
        return answer.read()


def test_every_node_gets_0_to_10_points_that_follow_the_running_jobs(service):
    old = row("old", 4, placement=["h0", "h0", "h4", "h4"], up=200.0)
    assert service.ask("POST", "/jobs", {"jobs": [old]})[0] == 200
    status, answer = service.ask("POST", "/prioritize", args(row(gpus=8, up=200.0), gpus=2))
    assert status == 200
    found = points(answer)
    assert list(found) == NAMES
    assert all(isinstance(score, int) and 0 <= score <= 10 for score in found.values())
    assert found["h8"] == 10 > found["h1"] > found["h0"] == 0
    assert service.ask("DELETE", "/jobs/old")[0] == 200
    assert points(service.ask("POST", "/prioritize", args(row(gpus=8, up=200.0), gpus=2))[1])["h0"] == 10


def test_names_of_fields_are_read_whatever_their_case(service):
    upper = service.ask("POST", "/prioritize", args(row()))
    lower = service.ask("POST", "/prioritize", {"pod": pod(row()), "nodes": None, "nodenames": NAMES})
    assert upper == lower
    assert upper[0] == 200


def test_whole_nodes_are_answered_with_whole_nodes(service):
    nodes = {"kind": "NodeList", "items": [{"metadata": {"name": name}, "spec": {"x": [1]}} for name in ("h3", "zz")]}
    status, answer = service.ask("POST", "/filter", {"Pod": pod(row()), "Nodes": nodes})
    assert status == 200
    assert answer["NodeNames"] is None
    assert answer["Nodes"] == {**nodes, "items": nodes["items"][:1]}
    assert list(answer["FailedAndUnresolvableNodes"]) == ["zz"]
    assert [one["Host"] for one in service.ask("POST", "/prioritize", {"Pod": pod(row()), "Nodes": nodes})[1]] == [
        "h3",
        "zz",
    ]


def test_filter_passes_nodes_with_room_and_says_why_others_fail(service):
    service.ask("POST", "/jobs", {"jobs": [row("old", 2, placement=["h0", "h1"])]})
    status, answer = service.ask("POST", "/filter", args(row(), gpus=2, names=["h0", "h2", "zz"]))
    assert status == 200
    assert answer == {
        "Nodes": None, "NodeNames": ["h2"], "FailedNodes": {"h0": "commsim: 1 GPU free, the pod needs 2"},
        "FailedAndUnresolvableNodes": {"zz": "commsim: not a host of the cluster's file"}, "Error": "",
    }  # fmt: skip


def test_a_gang_has_its_number_of_gpus_on_each_host(service):
    gang = {"gpus_per_host": 2}
    assert service.ask("POST", "/jobs", {"jobs": [row("old", 1, placement=["h0"])]})[0] == 200
    asked = {"jobs": [row("g", 6) | gang], "reserve": True}
    status, answer = service.ask("POST", "/place", asked)
    assert status == 200
    for one in answer["candidates"]:
        assert sorted(map(one["placement"]["g"].count, set(one["placement"]["g"]))) == [2, 2, 2]
        assert "h0" not in one["placement"]["g"]
    assert {one["job"]: one.get("gpus_per_host") for one in service.ask("GET", "/jobs")[1]["jobs"]} == {
        "old": None,
        "g": 2,
    }
    service.ask("DELETE", "/jobs/g")
    status, answer = service.ask("POST", "/place", {"jobs": [row("g", 24) | gang]})
    assert (status, "need 24 GPUs, and 23 are free" in answer["error"]) == (409, True)
    status, answer = service.ask("POST", "/jobs", {"jobs": [row("g", 4, placement=["h1", "h1", "h2", "h3"]) | gang]})
    assert (status, answer["error"]) == (400, "job g has 1 GPU on h2, and its gpus_per_host is 2")
    # a pod of one GPU: no host with one free GPU that is not the job's, and no third one on a host that has two
    service.ask("POST", "/jobs", {"jobs": [row("g", 6, placed=["h1", "h1", "h2"]) | gang]})
    names = service.ask("POST", "/filter", args("g", names=["h0", "h1", "h2", "h3"]))[1]["NodeNames"]
    assert names == ["h2", "h3"]


def test_drained_hosts_take_no_job(service):
    job = row("a", 4, placement=["h0", "h0", "h4", "h4"])
    status, answer = service.ask("POST", "/place", {"jobs": [job, row("b", 20)], "drain": ["h0", "h9"]})
    assert (status, "need 22 GPUs, and 18 are free" in answer["error"]) == (409, True)
    status, answer = service.ask("POST", "/place", {"jobs": [job, row("b", 16)], "drain": ["h0", "h9"]})
    assert status == 200
    at = answer["candidates"][0]["placement"]
    assert not {"h0", "h9"} & {*at["a"], *at["b"]}
    assert at["a"][2:] == ["h4", "h4"]
    assert "job a is moved off hosts that are drained, h0x2; its other ranks stay" in answer["notes"]
    status, answer = service.ask("POST", "/place", {"jobs": [job], "drain": ["zz"]})
    assert (status, "has no host 'zz' to drain" in answer["error"]) == (400, True)
    for listed in ("h[0-1]", "h0-1"):
        status, answer = service.ask("POST", "/place", {"jobs": [job], "drain": [listed]})
        assert (status, {"h0", "h1"} & {*answer["candidates"][0]["placement"]["a"]}) == (200, set())
    service.ask("POST", "/jobs", {"jobs": [job]})
    status, answer = service.ask("POST", "/moves", {"drain": ["h0"]})
    assert (status, [one["job"] for one in answer["forced"]]) == (200, ["a"])


def test_a_job_that_is_larger_than_the_cluster_is_refused(service):
    """It was known, and pods of it were bound to nodes where the job can never run."""
    status, answer = service.ask("POST", "/jobs", {"jobs": [row("k", 25)]})
    assert (status, answer["error"]) == (400, "job k needs 25 GPUs, and the cluster has 24")
    assert service.ask("GET", "/jobs")[1]["jobs"] == []
    asked = args(row("k", 25), gpus=2)
    assert "job k needs 25 GPUs, and the cluster has 24" in service.ask("POST", "/filter", asked)[1]["Error"]
    assert service.ask("POST", "/prioritize", asked)[0] == 400


def test_no_node_will_do_while_a_job_needs_more_gpus_than_are_free(service):
    old = row("old", 16, placement=[f"h{i // 2}" for i in range(16)])
    assert service.ask("POST", "/jobs", {"jobs": [old, row("k", 10, placed=["h8"])]})[0] == 200
    answer = service.ask("POST", "/filter", args("k", gpus=2, names=["h0", "h9", "zz"]))[1]
    assert answer["NodeNames"] == []
    assert answer["FailedNodes"]["h9"] == "commsim: job k needs 9 more GPUs, 7 are free"
    assert set(points(service.ask("POST", "/prioritize", args("k", gpus=2))[1]).values()) == {0}
    service.ask("POST", "/jobs", {"jobs": [row("k", 8, placed=["h8"])]})
    assert service.ask("POST", "/filter", args("k", names=["h9"]))[1]["NodeNames"] == ["h9"]
    assert points(service.ask("POST", "/prioritize", args("k", names=["h9"]))[1])["h9"] > 0


def test_known_jobs_are_placed_by_their_names(service):
    service.ask("POST", "/jobs", {"jobs": [row("a", 8, placed=["h5"]), row("b", 2), row("c", 2, placed=["h0", "h0"])]})
    status, answer = service.ask("POST", "/place", {"jobs": ["a", row("d", 2), "c"], "candidates": 1})
    assert status == 200
    (best,) = answer["candidates"]
    assert set(best["placement"]) == {"a", "d", "c"}
    assert best["placement"]["a"][0] == "h5"
    assert [note for note in answer["notes"] if "job " in note] == [
        "job b is known and has no GPUs yet: none are kept for it; to place both, send its name, too",
        "job c is known on h0x2, and is placed anew: the request has neither placement nor placed",
    ]
    status, answer = service.ask("POST", "/place", {"jobs": ["a", "nobody"]})
    assert status == 400
    assert "jobs[1] is the name of no known job: 'nobody'; known: a, b, c; the body must be" in answer["error"]


def test_a_pod_of_no_known_job_may_go_anywhere(service):
    for one in (pod(), pod("unheard-of"), pod(row(), gpus=0), {"metadata": {}}, {}):
        tree = {"Pod": one, "NodeNames": ["h0", "zz"]}
        assert service.ask("POST", "/filter", tree)[1]["NodeNames"] == ["h0", "zz"]
        assert points(service.ask("POST", "/prioritize", tree)[1]) == {"h0": 0, "zz": 0}


@pytest.mark.parametrize("how", ["annotation", "commsim/job", "job-name", "volcano.sh/job-name"])
def test_a_pod_names_a_job_that_was_told_of(service, how):
    service.ask("POST", "/jobs", {"jobs": [row("told", 4, placed=["h0", "h0"])]})
    one = pod("told", gpus=2) if how == "annotation" else pod(gpus=2, labels={how: "told"})
    found = points(service.ask("POST", "/prioritize", {"Pod": one, "NodeNames": NAMES})[1])
    assert (found["h0"], found["h1"], found["h8"]) == (0, 10, 9)


def test_a_job_described_wrongly_is_told_to_the_user_of_the_pod(service):
    wrong = row() | {"gpus": "four"}
    status, answer = service.ask("POST", "/filter", args(wrong))
    assert status == 200
    assert (
        answer["Error"] == "commsim: annotation commsim/job: [0].gpus must be a whole number 1..2147483647, got 'four'"
    )
    assert answer["NodeNames"] is None
    status, answer = service.ask("POST", "/prioritize", args(wrong))
    assert status == 400
    assert "gpus must be a whole number" in answer["error"]
    assert "the pod asks for 5 GPUs, but 4" in service.ask("POST", "/filter", args(row(), gpus=5))[1]["Error"]


def test_jobs_are_added_all_or_none_and_listed(service):
    good, bad = row("a", 1, placement=["h0"]), row("b", 3, placement=["h0", "h0", "h1"])
    status, answer = service.ask("POST", "/jobs", {"jobs": [good, bad]})
    assert status == 409
    assert answer["error"].startswith("job b takes 2 GPUs of h0")
    assert service.ask("GET", "/jobs")[1]["jobs"] == []
    before = service.ask("POST", "/jobs", {"jobs": [good | {"start_ms": 5}, row("c", 4, placed=["h1"])]})[1]
    assert [(job["job"], job["gpus"], job["placed"]) for job in before["jobs"]] == [("a", 1, ["h0"]), ("c", 4, ["h1"])]
    assert service.ask("POST", "/jobs", {"jobs": [good, bad]})[0] == 409
    assert service.ask("GET", "/jobs")[1] == before  # with its version: nothing has changed
    again = service.ask("POST", "/jobs", {"jobs": before["jobs"]})
    assert (again[0], again[1]["jobs"]) == (200, before["jobs"])
    assert service.ask("DELETE", "/jobs/b") == (404, {"error": "job 'b' is not known"})


def test_what_is_refused_is_quoted_with_its_first_letters(service):
    long, there = "a" * 5000, row("b", 1, placement=["a" * 5000])
    asked = (("DELETE", f"/jobs/{long}", None), ("GET", f"/{long}", None), ("POST", "/jobs", {"jobs": [there]}))
    for method, path, tree in asked:
        status, answer = service.ask(method, path, tree)
        assert 400 <= status < 500
        assert len(answer["error"]) < 300
        assert "aaa" in answer["error"]


def test_place_answers_with_candidates_best_first(service):
    service.ask("POST", "/jobs", {"jobs": [row("old", 4, placement=["h0", "h0", "h4", "h4"], up=200.0)]})
    status, answer = service.ask("POST", "/place", {"jobs": [row(gpus=8, up=200.0)], "candidates": 6})
    assert status == 200
    found = answer["candidates"]
    assert 1 < len(found) <= 6
    lost = [one["cost"]["total"] for one in found]
    assert lost == sorted(lost)
    assert lost[0] < lost[-1]
    for one in found:
        assert set(one["placement"]) == set(one["shifts_ms"]) == {"new"}  # what runs stays
        assert set(one["predicted_iteration_ms"]) == {"new", *one["cost"]["added"]}
        scores = [link["score"] for link in one["links"]]
        assert one["score_mean"] == pytest.approx(statistics.fmean(scores) if scores else 1.0)
        assert one["score_min"] == pytest.approx(min(scores, default=1.0))


def test_a_job_that_lacks_a_field_is_told_the_right_body(service):
    for path in ("/jobs", "/place"):
        answer = service.ask("POST", path, {"jobs": [{"job": "a"}]})[1]
        assert answer["error"].startswith("request: jobs[0].gpus is missing: a whole number 1..2147483647; the body")


def test_a_job_grows_from_the_hosts_that_it_has(service):
    """`placed` was not known in POST /place: a scheduler could not ask where a running job may grow."""
    service.ask("POST", "/jobs", {"jobs": [row("g", 8, placed=["h5", "h5", "h6"], start_ms=10)]})
    status, answer = service.ask("POST", "/place", {"jobs": [row("g", 8, placed=["h5", "h5", "h6"], start_ms=10)]})
    assert status == 200
    for one in answer["candidates"]:
        assert one["placement"]["g"][:3] == ["h5", "h5", "h6"]
        used = Counter(one["placement"]["g"])
        assert used.total() == 8
        assert max(used.values()) <= 2
    assert set(answer["candidates"][0]["placement"]["g"]) == {"h4", "h5", "h6", "h7"}  # in its rack
    assert not any("job g" in note for note in answer["notes"])
    notes = service.ask("POST", "/place", {"jobs": [row("g", 8)]})[1]["notes"]
    assert notes[0] == "job g is known on h5x2 h6, and is placed anew: the request has neither placement nor placed"
    notes = service.ask("POST", "/place", {"jobs": [row("other", 2)]})[1]["notes"]
    assert notes[0] == "job g has 3 of its 8 GPUs: none are kept for the others"


def test_a_pod_is_reported_by_its_machine(tmp_path):
    """The kubelet chooses the GPUs; `m0` was a node for /filter, and a wrong one in `placed`."""
    cluster = read_cluster({"topology": {"spec": "dgx-h100@star:machines=2"}, "hosts": {"busy": {"m0.gpu1": 1}}})
    given = ["m0.gpu0", "m0.gpu2", "m0.gpu3", "m0.gpu4"]
    with running(cluster, store=JobStore(tmp_path / "jobs.sqlite")) as one:
        assert one.ask("POST", "/filter", args(row("a"), gpus=4, names=["m0"]))[1]["NodeNames"] == ["m0"]
        for _ in range(2):  # it keeps them when it is sent again
            status, answer = one.ask("POST", "/jobs", {"jobs": [row("a", placed=["m0"] * 4)]})
            assert (status, answer["jobs"][0]["placed"]) == (200, given)
        assert one.ask("POST", "/jobs", {"jobs": [row("b", placed=["m0x4"])]})[0] == 400  # 3 are left
        pod_of_b = args(row("b", 8, placed=["m0x3"]), gpus=1, names=["m0", "m1"])
        assert one.ask("POST", "/filter", pod_of_b)[1]["NodeNames"] == ["m1"]
        (found,) = one.ask("POST", "/place", {"jobs": [row("c", placement=["m1x4"])]})[1]["candidates"]
        assert found["placement"]["c"] == ["m1.gpu0", "m1.gpu1", "m1.gpu2", "m1.gpu3"]
    with running(cluster, store=JobStore(tmp_path / "jobs.sqlite")) as again:
        assert again.ask("GET", "/jobs")[1]["jobs"][0]["placed"] == given


def test_a_least_score_filters_nodes_out():
    with running(small_cluster(), min_score=0.9) as service:
        service.ask("POST", "/jobs", {"jobs": [row("old", 4, placement=["h0", "h0", "h4", "h4"], up=200.0)]})
        answer = service.ask("POST", "/filter", args(row(gpus=8, up=200.0), gpus=2, names=["h1", "h8"]))[1]
        assert answer["NodeNames"] == ["h8"]
        assert answer["FailedNodes"]["h1"].startswith("commsim: score ")
        assert answer["FailedNodes"]["h1"].endswith(" is below 0.9")


def test_one_line_is_logged_for_each_request(capfd):
    with running(log=True) as service:
        service.ask("GET", "/healthz")
        service.ask("POST", "/place", {})
    lines = capfd.readouterr().err.splitlines()
    assert [line.partition(" - ")[2] for line in lines] == [
        '"GET /healthz HTTP/1.1" 200 OK', '"POST /place HTTP/1.1" 400 Bad Request',
    ]  # fmt: skip


def test_a_search_with_faults_names_the_jobs_that_run_over_them():
    running_job = row("a", 4, placed=["h0", "h0", "h4", "h4"])
    with running() as one:
        assert one.ask("POST", "/jobs", {"jobs": [running_job]})[0] == 200
        asked = {"jobs": [row("b", 2)], "scale": ["link:leaf0:*=0.1"]}
        status, answer = one.ask("POST", "/place", asked)
        assert status == 200
        assert any("over failed or slower links" in note and "a (1.0000x before" in note for note in answer["notes"])
        status, answer = one.ask("POST", "/place", {"jobs": [row("b", 2)], "fail": ["switch:leaf0"]})
        assert status == 200
        assert "job a is moved off hosts that are cut off, h0x2; its other ranks stay" in answer["notes"]
