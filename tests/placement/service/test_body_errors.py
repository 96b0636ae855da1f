"""What is wrong with a body is one line of JSON, in the words of the command line."""

import pytest
from place_service import pod, row, running


@pytest.fixture(scope="module")
def service():
    with running(body_bytes=64 * 1024, seconds=0.4) as service:
        yield service


DEEP = b"[" * 30_000 + b"]" * 30_000


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "request: the body is missing"),
        (b"{", "JSON decode error"),
        (b'{"jobs": [],\n "b" 3}', "Expecting ':' delimiter at line 2, column 6"),
        (b'{"a": NaN}', ("is missing", "a is not a field here; known: ")),
        (b'{"a": -Infinity}', ("is missing", "a is not a field here; known: ")),
        (b"1" * 5000, "error parsing the body"),
        (b'"\xff"', "error parsing the body"),
        (DEEP, "error parsing the body"),
        (b"[]", "the body must be a table of fields"),
        (b"3", "the body must be a table of fields"),
        (b"null", "the body must be a table of fields"),
    ],
)
@pytest.mark.parametrize("path", ["/prioritize", "/filter", "/place", "/jobs"])
def test_bodies_that_are_no_request_are_refused(service, path, body, message):
    status, answer = service.ask("POST", path, body=body)
    assert status == 400
    said = message if isinstance(message, str) else message[path in ("/place", "/jobs")]
    assert said in answer["error"]


ARGS = {"Pod": pod(row()), "NodeNames": ["h0"]}


@pytest.mark.parametrize("depth", [100, 300, 500, 900, 990, 5000])
@pytest.mark.parametrize("inner", [b"1", b"NaN", b'"\\ud800"'])
def test_whole_nodes_that_hold_anything_go_back_or_are_refused(service, capfd, depth, inner):
    what = b'{"a":' * depth + inner + b"}" * depth
    nodes = b'{"Pod": {}, "Nodes": {"items": [{"metadata": {"name": "h0"}, "x": %s}]}}' % what
    for path in ("/filter", "/prioritize"):
        status, answer = service.ask("POST", path, body=nodes)
        is_refused = "error" in answer  # no assert sees the answer itself: pytest does not write what is so deep
        assert (status, is_refused) in {(200, False), (400, True)}
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("path", "tree", "message"),
    [
        ("/prioritize", {"NodeNames": ["h0"]}, "request: Pod is missing"),
        (
            "/prioritize",
            {"Pod": 3, "NodeNames": ["h0"]},
            "Pod must be a table of fields, got 3",
        ),
        ("/prioritize", {"Pod": {}}, "needs one of NodeNames (nodeCacheCapable: true) and Nodes, got neither"),
        ("/prioritize", ARGS | {"Nodes": {"items": []}}, "got both"),
        ("/prioritize", ARGS | {"NodeNames": "h0"}, "NodeNames must be a list, got 'h0'"),
        ("/prioritize", ARGS | {"NodeNames": ["h0", 3]}, "NodeNames[1] must be text, got 3"),
        ("/prioritize", {"Pod": {}, "Nodes": {"items": [{}]}}, "Nodes.items[0].metadata.name is missing"),
        ("/prioritize", {"Pod": {}, "Nodes": []}, "Nodes must be a table of values by name, got a list"),
        ("/prioritize", ARGS | {"nodenames": ["h1"]}, "a field appears twice"),
        ("/prioritize", ARGS | {"Other": 1}, "request: Other is not a field here; known: NodeNames, Nodes, Pod"),
        ("/prioritize", ARGS | {"Pod": {"metadata": 1}}, "Pod.metadata must be a table of fields, got 1"),
        ("/prioritize", ARGS | {"Pod": pod("{")}, "the annotation commsim/job is not JSON"),
        ("/prioritize", ARGS | {"Pod": pod("{" * 20_000)}, "the annotation commsim/job is not JSON"),
        ("/prioritize", ARGS | {"Pod": pod(row(), gpus="1.5")}, "nvidia.com/gpu must be a whole number, got '1.5'"),
        ("/prioritize", ARGS | {"Pod": pod(row(), gpus="100000")}, "nvidia.com/gpu must be at most 99999, got 100000"),
        ("/prioritize", ARGS | {"Pod": pod(row(period=1e300))}, "iter_time_ms must be at most"),
        ("/prioritize", ARGS | {"Pod": pod(row(placed=["h0"] * 9))}, "placed names 9 GPUs"),
        ("/prioritize", ARGS | {"Pod": pod(row(placed=["nowhere"]))}, "'nowhere', which has no GPUs here"),
        ("/place", [row()], "request: the body must be a table of fields, got a list; the body must be like"),
        ("/place", {"jobs": [row()], "generators": "packed"}, "generators must be a list, got 'packed'"),
        ("/place", {"jobs": [row()], "placements": [{}]}, "placements must be a table of values by name, got a list"),
        ("/place", {}, "request: jobs is missing: a list of jobs, or of names of known jobs, at least one; the body"),
        (
            "/place",
            {"jobs": []},
            "jobs must be a list of jobs, or of names of known jobs, at least one, got []; the body",
        ),
        ("/place", {"jobs": ["a"]}, "request: jobs[0] is the name of no known job: 'a'; known: none; the body must be"),
        ("/jobs", {"jobs": ["a"]}, "request: jobs[0] must be a table, got str; the body must be like {"),
        ("/place", {"jobs": [3]}, "jobs[0] must be a table, got int"),
        ("/place", {"jobs": [row(gpus=10**9)]}, "of 100000 GPUs"),
        ("/place", {"jobs": [row(gpus=1000)]}, ""),
        (
            "/place",
            {"jobs": [row()], "candidates": 10**6},
            "candidates must be a whole number 1..100, got 1000000; the body must be like {",
        ),
        ("/place", {"jobs": [row()], "generators": ["magic"]}, "magic"),
        (
            "/place",
            {"jobs": [row()], "colour": 1},
            "colour is not a field here; known: candidates, check, drain, fail, gene",
        ),
        ("/place", {"jobs": [row(up=-1.0)]}, "jobs[0].phases[0].dur_ms must be more than 0, and at most the iter"),
        (
            "/place",
            {"jobs": [row()], "rank_by": "magic"},
            "rank_by must be one of stretch, mean, min, weighted, got 'm",
        ),
        ("/place", {"jobs": [row()], "candidate": 3}, "candidate is not a field here; did you mean candidates? known"),
        (
            "/place",
            {"jobs": [row() | {"phases": row()["phases"] * 65}]},
            "jobs[0].phases must have at most 64 phases, got 65",
        ),
        ("/place", {"jobs": [row(placed=["h0"], placement=["h0"] * 4)]}, "jobs[0].placed and placement have the same"),
        ("/place", {"jobs": [row(gpus=2, placed=["h0"] * 3)]}, "jobs[0].placed names 3 GPUs, but the job has 2"),
        ("/place", {"jobs": [row()], "reserve": "yes"}, "request: reserve must be true or false, got 'yes'"),
        ("/place", {"jobs": [row()], "placements": {}}, "request: placements must have at least 1 of them, got 0"),
        ("/moves", {"most": 0}, "request: most must be 1 or more, got 0"),
        ("/moves", {"most": 1.5}, "request: most must be a whole number, got 1.5"),
        ("/moves", {"candidates": 101}, "request: candidates must be at most 100, got 101"),
        ("/moves", {"jobs": []}, "request: jobs must have at least 1 of them, got 0"),
        ("/moves", {"jobs": ["a" * 300]}, "request: jobs[0] must be text of at most 256 letters, got 'aaaa"),
        ("/moves", {"restart": "60s"}, "request: restart is not a field here; did you mean restart_s?"),
        ("/moves", {"candidate": 3}, "request: candidate is not a field here; did you mean candidates?"),
        ("/bind", {"PodName": ""}, "request: PodName must be text of at least 1 letters, got ''"),
        ("/bind", {"podname": "a"}, "request: PodNamespace is missing"),
        (
            "/jobs",
            {"jobs": [row(rate=1e300)]},
            "rate_Gbps must be more than 0, and at most 144000, got 1e+300",
        ),
        ("/jobs", {"jobs": [row() | {"phases": [{"offset_ms": 0, "bytes": 1e300}]}]}, "bytes must be more than 0, and"),
        ("/jobs", {"jobs": [row(), row()]}, "must be another name"),
        ("/jobs", {"jobs": [row("a\nb")]}, "printable"),
        ("/jobs", {"jobs": [row() | {"gpus": 1.5}]}, "jobs[0].gpus must be a whole number 1..2147483647, got 1.5"),
        ("/jobs", {"jobs": [row() | {"phase": []}]}, "jobs[0].phase is not a field here; did you mean phases? known: "),
        (
            "/jobs",
            {"jobs": [row(offset=300.0)]},
            "offset_ms must be 0 or more, and less than the iteration time, got 300",
        ),
        (
            "/jobs",
            {"jobs": [row(rate=10.0) | {"iter_time_ms": 10**400}]},
            "iter_time_ms must be a finite number",
        ),
    ],
)
def test_wrong_fields_are_named(service, path, tree, message):
    status, answer = service.ask("POST", path, tree)
    assert status == 400, answer
    assert message in answer["error"]
    assert "\n" not in answer["error"]
