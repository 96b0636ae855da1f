"""Changes of a service that lives: versions, reservations, moves, searches that wait, and errors of one form."""

import json
import threading

import pytest
from place_service import read_all, row, running, small_cluster

from commsim.cli import main
from commsim.placement.service import limits, search_queue
from commsim.placement.service.guard import Refusal
from commsim.placement.service.job_store import JobStore
from commsim.placement.service.versions import require_match

OLD = row("old", 4, placement=["h0", "h0", "h4", "h4"], up=150.0)


def test_the_version_is_the_same_after_a_restart(tmp_path):
    with running(store=JobStore(tmp_path / "jobs")) as service:
        for i in range(3):
            version = service.ask("POST", "/jobs", {"jobs": [row("a", 1 + i), row("b", 1)]})[1]["version"]
        version = service.ask("DELETE", "/jobs/b")[1]["version"]
        before = service.ask("GET", "/jobs")
    assert version == 4
    with running(store=JobStore(tmp_path / "jobs")) as service:
        assert service.ask("GET", "/jobs") == before
        assert before[1]["version"] == 4
        assert service.ask("POST", "/jobs", {"jobs": [OLD]}, {"If-Match": '"4"'})[1]["version"] == 5


def test_a_change_of_another_version_is_refused():
    with running() as service:
        assert service.ask("POST", "/jobs", {"jobs": [OLD]}, {"If-Match": '"0"'})[0] == 200
        status, answer = service.ask("POST", "/jobs", {"jobs": [row("b", 1)]}, {"If-Match": '"0"'})
        assert (status, answer["error"][:16]) == (412, "the version is 1")
        assert service.ask("DELETE", "/jobs/old", None, {"If-Match": '"7", "1"'})[0] == 200
        tables = {"topology": {"spec": "star:n_hosts=4"}, "hosts": {"gpus": 1}}
        assert service.ask("POST", "/cluster", tables, {"If-Match": '"1"'})[0] == 412
        asked = {"jobs": [row("b", 2)], "reserve": True}
        assert service.ask("POST", "/place", asked, {"If-Match": '"9"'})[0] == 412
        assert service.ask("POST", "/place", asked, {"If-Match": '"2"'})[1]["reserved"]["version"] == 3


@pytest.mark.parametrize("header", ["13", '"13', "x" * 3000, '"13" "14"', ""])
def test_a_header_that_names_no_version_is_refused(header):
    with pytest.raises(Refusal, match="If-Match is a version in quotes") as caught:
        require_match(header, 13)
    assert caught.value.status == 400
    require_match('"12", "13"', 13)
    require_match("*", 13)


AT_THE_END = [
    {"job": name, "gpus": 2, "iter_time_ms": period, "phases": [{"offset_ms": period, "bytes": n_bytes}], **more}
    for name, period, n_bytes, more in (
        ("a", 20.0, 1e9, {"placement": ["h0", "h4"], "start_ms": 3.7}),
        ("b", 76.3, 123456789.125, {"placed": ["h1"]}),
        ("c", 0.1, 7e8 / 3, {}),
    )
]


def test_what_get_lists_can_be_posted_to_another_service(tmp_path):
    """The answer as a whole, in which jobs are as they were sent; it is a file of jobs for other verbs, too."""
    with running() as service:
        assert service.ask("POST", "/jobs", {"jobs": AT_THE_END})[0] == 200
        listed = service.ask("GET", "/jobs")[1]
    for sent, got in zip(AT_THE_END, listed["jobs"], strict=True):
        phase = sent["phases"][0] | {"bytes": pytest.approx(sent["phases"][0]["bytes"], rel=5e-16)}
        assert got["phases"] == [phase]
        assert got["iter_time_ms"] == sent["iter_time_ms"]
    with running() as other:
        assert other.ask("POST", "/jobs", listed) == (200, listed)
        assert other.ask("GET", "/jobs")[1] == listed
    cluster, jobs = tmp_path / "c.toml", tmp_path / "jobs.json"
    cluster.write_text('[topology]\nspec = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4"\n[hosts]\ngpus = 1\n')
    jobs.write_text(json.dumps(listed | {"jobs": listed["jobs"][:1]}))
    assert main(["workload", "share", str(cluster), str(jobs)]) == 0


def test_what_is_placed_can_be_reserved_in_the_same_request(tmp_path):
    with running(store=JobStore(tmp_path / "jobs")) as service:
        service.ask("POST", "/jobs", {"jobs": [OLD]})
        status, answer = service.ask("POST", "/place", {"jobs": [row("b", 16)], "candidates": 2, "reserve": True})
        assert status == 200
        best = answer["candidates"][0]
        assert answer["reserved"] == {"version": 2, "jobs": ["b"]}
        known = service.ask("GET", "/jobs")[1]["jobs"][1]
        assert known["placed"] == best["placement"]["b"]
        assert known["start_ms"] == pytest.approx(best["shifts_ms"]["b"])
        status, answer = service.ask("POST", "/place", {"jobs": [row("c", 5)], "reserve": True})
        assert (status, "are free" in answer["error"]) == (409, True)
    with running(store=JobStore(tmp_path / "jobs")) as service:
        assert service.ask("GET", "/jobs")[1]["jobs"][1] == known


def test_no_gpu_is_reserved_twice_by_requests_at_once():
    """24 GPUs for 16 requests of 2: each gets its own, and 4 are told that nothing is left."""
    with running() as service:
        answers = [None] * 16

        def ask(i):
            answers[i] = service.ask("POST", "/place", {"jobs": [row(f"j{i}", 2)], "candidates": 1, "reserve": True})

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(16)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        taken = [name for job in service.ask("GET", "/jobs")[1]["jobs"] for name in job["placed"]]
    done = [answer for status, answer in answers if status == 200]
    assert all(status in (200, 400, 409) for status, _ in answers)
    assert len(taken) == 2 * len(done) >= 2
    assert max(taken.count(name) for name in taken) <= 2


def test_a_move_gains_what_is_lost_no_longer():
    jobs = [row("a", 2, placement=["h0", "h4"], up=150.0), row("b", 2, placement=["h1", "h5"], up=150.0)]
    with running() as service:
        assert service.ask("POST", "/moves", {})[0] == 409  # nothing is placed
        service.ask("POST", "/jobs", {"jobs": jobs})
        status, answer = service.ask("POST", "/moves", {"candidates": 3})
        assert status == 200
        first = answer["moves"][0]
        assert first["gain"] > 0.2
        assert first["cost_after"] == 0.0
        assert first["prediction"] == "simulation"
        assert len(set(first["placement_after"])) == 1
        assert {*first["iteration_now_ms"]} == {*first["iteration_after_ms"]} == {"a", "b"}  # who gains was left out
        assert all(ms > first["iteration_after_ms"][job] for job, ms in first["iteration_now_ms"].items())
        assert service.ask("POST", "/moves", {"jobs": ["b"]})[1]["moves"][0]["job"] == "b"
        assert service.ask("POST", "/moves", {"jobs": ["c"]})[0] == 409
        assert "pays_after_s" not in first
        paid = service.ask("POST", "/moves", {"candidates": 3, "restart_s": 60.0})[1]["moves"][0]
        now, after = (
            sum(200.0 / ms for ms in paid[key].values()) for key in ("iteration_now_ms", "iteration_after_ms")
        )
        assert paid["pays_after_s"] == pytest.approx(60.0 / (after - now), rel=1e-6)  # the one that moves is not slowed
        status, answer = service.ask("POST", "/moves", {"fail": ["host:h0"], "restart_s": 60.0})
        assert (status, [one["job"] for one in answer["forced"]]) == (200, ["a"])
        assert (answer["stopped_gpu_s"], answer["forced"][0]["stopped_gpu_s"]) == (120.0, 120.0)
        assert all("pays_after_s" in one for one in answer["moves"])
        assert service.ask("GET", "/jobs")[1]["version"] == 1  # nothing is changed


def test_searches_wait_for_each_other_and_what_is_refused_says_when_to_ask_again(monkeypatch):
    asked = {"jobs": [row("new", 2)], "candidates": 1}
    with running() as service:
        answers = []

        def ask():
            answers.append(service.ask("POST", "/place", asked))

        threads = [threading.Thread(target=ask) for _ in range(40)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert [status for status, _ in answers] == [200] * 40
        monkeypatch.setattr(search_queue, "MAX_WAITING", 0)
        with_headers = service.whole("POST", "/place", asked)
        assert with_headers[0] == 503
        assert int(with_headers[1]["retry-after"]) >= 1
        assert "searches are waiting" in with_headers[2]["error"]
    assert limits.MAX_WAITING >= 200


def test_every_error_is_json_of_one_form():
    move = {"x": 1}
    with running() as service:
        asked = (
            ("GET", "/nowhere", None, 404), ("PUT", "/jobs", {}, 405), ("POST", "/jobs", {"jobs": 3}, 400),
            ("DELETE", "/jobs/x", None, 404), ("POST", "/place", {"jobs": ["x"]}, 400), ("POST", "/moves", move, 400),
            ("POST", "/jobs", {"jobs": [row("a", 3, placement=["h0"] * 3)]}, 409),
        )  # fmt: skip
        for method, path, tree, wanted in asked:
            status, headers, answer = service.whole(method, path, tree)
            assert (status, set(answer), headers["content-type"]) == (wanted, {"error"}, "application/json"), path
        with service.connect() as client:
            client.sendall(b"NONSENSE\r\n\r\n")
            said = read_all(client)
        assert b"400" in said.splitlines()[0]
        assert set(json.loads(said.partition(b"\r\n\r\n")[2])) == {"error"}


def test_without_a_cluster_each_address_answers_as_documented():
    body = {"jobs": [row("a", 1)]}
    with running(None) as service:
        for method, path, tree in (("POST", "/jobs", body), ("POST", "/place", body), ("POST", "/moves", {}),
                                   ("DELETE", "/jobs/a", None), ("GET", "/cluster", None)):  # fmt: skip
            status, answer = service.ask(method, path, tree)
            assert (status, answer["error"][:23]) == (409, "there is no cluster yet"), path
        assert service.ask("GET", "/jobs") == (200, {"version": 0, "jobs": []})


def test_a_service_knows_more_jobs_than_a_hundred():
    """100 placed jobs left no room for one more in a search."""
    with running(small_cluster(n_leaves=12, hosts_per_leaf=10, gpus=2)) as service:
        jobs = [row(f"r{i}", 2, placement=[f"h{i}", f"h{i}"]) for i in range(110)]
        assert service.ask("POST", "/jobs", {"jobs": jobs})[0] == 200
        status, answer = service.ask("POST", "/place", {"jobs": [row("new", 4)], "candidates": 2})
        assert status == 200
        assert len(json.dumps(answer)) < 10_000
        status, answer = service.ask("POST", "/place", {"jobs": [row("new", 4)], "candidates": 2, "rank_by": "mean"})
        assert status == 200
