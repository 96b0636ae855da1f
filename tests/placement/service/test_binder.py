"""A scheduler has pods bound by the service, so that it knows where the first pod of a job is when the second comes."""

import contextlib
import http.server
import json
import threading

import pytest
from place_service import pod, row, running

from commsim.core.errors import InputError
from commsim.placement.service.job_store import JobStore
from commsim.placement.service.kube_api import KubeApi

NAMES = [f"h{i}" for i in range(12)]


class Api(http.server.BaseHTTPRequestHandler):
    """What the API server answers to a binder."""

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        found = self.server.pods.get(name)
        self.answer(200, found) if found else self.answer(
            404, {"kind": "Status", "message": f'pods "{name}" not found'}
        )

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body, self.headers.get("Authorization")))
        meanwhile, self.server.meanwhile = self.server.meanwhile, None
        if meanwhile is not None and meanwhile():
            self.close_connection = True  # without an answer
        elif self.server.refuses:
            self.answer(409, {"kind": "Status", "message": "pod is already assigned to a node"})
        else:
            self.answer(201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201})

    def answer(self, status, tree):
        body = json.dumps(tree).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def api_server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        server.asked, server.refuses, server.pods, server.meanwhile = [], False, {}, None
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def job_pod(number, job, gpus=2):
    """Return a pod as the scheduler sends it, with fields that are not read."""
    one = pod(job, gpus=gpus)
    one["metadata"] |= {"name": f"new-{number}", "namespace": "team", "uid": f"uid-{number}", "resourceVersion": "7"}
    one["spec"] |= {"schedulerName": "default-scheduler", "nodeName": "", "priority": 0}
    return one


def binding(number, node):
    return {"podName": f"new-{number}", "podNamespace": "team", "podUID": f"uid-{number}", "node": node}


def test_the_second_pod_is_near_the_first(tmp_path):
    job = row("new", 4)
    with api_server() as api:
        url = f"http://127.0.0.1:{api.server_port}"
        with running(api=KubeApi(url, "x" * 16), store=JobStore(tmp_path / "jobs")) as service:
            first = {"Pod": job_pod(0, job), "NodeNames": NAMES}
            assert service.ask("POST", "/filter", first)[1]["NodeNames"] == NAMES
            assert service.ask("POST", "/bind", binding(0, "h5")) == (200, {"Error": ""})
            meta = {"name": "new-0", "namespace": "team", "uid": "uid-0"}
            (asked,) = api.asked
            assert asked == (
                "/api/v1/namespaces/team/pods/new-0/binding",
                {"apiVersion": "v1", "kind": "Binding", "metadata": meta,
                 "target": {"apiVersion": "v1", "kind": "Node", "name": "h5"}},
                "Bearer " + "x" * 16,
            )  # fmt: skip
            (known,) = service.ask("GET", "/jobs")[1]["jobs"]
            assert known["placed"] == ["h5", "h5"]
            points = service.ask("POST", "/prioritize", {"Pod": job_pod(1, job), "NodeNames": NAMES})[1]
            found = {one["Host"]: one["Score"] for one in points}
            assert found["h4"] == found["h6"] == 10 > found["h0"]  # the rack of the first
            assert found["h5"] == 0  # its GPUs are taken
            assert service.ask("POST", "/bind", binding(1, "h6")) == (200, {"Error": ""})
            (known,) = service.ask("GET", "/jobs")[1]["jobs"]
            assert known["placed"] == ["h5", "h5", "h6", "h6"]
            assert "GPUs" in service.ask("POST", "/filter", {"Pod": job_pod(2, job), "NodeNames": NAMES})[1]["Error"]


def test_what_the_api_server_refuses_is_not_reserved():
    with api_server() as api, running(api=KubeApi(f"http://127.0.0.1:{api.server_port}")) as service:
        service.ask("POST", "/filter", {"Pod": job_pod(0, row("new", 4)), "NodeNames": NAMES})
        api.refuses = True
        said = service.ask("POST", "/bind", binding(0, "h5"))[1]["Error"]
        assert said == "commsim: the API server refuses (409): pod is already assigned to a node"
        assert [job["placed"] for job in service.ask("GET", "/jobs")[1]["jobs"]] == [[]]
        api.refuses = False
        assert service.ask("POST", "/bind", binding(0, "h5"))[1]["Error"] == ""
        assert [job["placed"] for job in service.ask("GET", "/jobs")[1]["jobs"]] == [["h5", "h5"]]


def test_a_refused_pod_gives_back_its_own_gpus_and_not_those_of_a_later_one():
    """The last GPUs of the job were freed: those of a pod that was bound while the API server was slow."""
    with api_server() as api, running(api=KubeApi(f"http://127.0.0.1:{api.server_port}")) as service:
        for number in (0, 1):
            service.ask("POST", "/filter", {"Pod": job_pod(number, row("new", 4)), "NodeNames": NAMES})

        def another():
            assert service.ask("POST", "/bind", binding(1, "h6")) == (200, {"Error": ""})
            api.refuses = True

        api.meanwhile = another
        assert "already assigned" in service.ask("POST", "/bind", binding(0, "h5"))[1]["Error"]
        assert [job["placed"] for job in service.ask("GET", "/jobs")[1]["jobs"]] == [["h6", "h6"]]


@pytest.mark.parametrize(("node", "placed"), [("h5", ["h5", "h5"]), ("", [])])
def test_a_pod_whose_binding_is_not_answered_is_looked_up(node, placed):
    """The API server had bound it, and its GPUs counted as free."""
    with api_server() as api, running(api=KubeApi(f"http://127.0.0.1:{api.server_port}")) as service:
        service.ask("POST", "/filter", {"Pod": job_pod(0, row("new", 4)), "NodeNames": NAMES})
        api.pods["new-0"] = job_pod(0, row("new", 4))
        api.pods["new-0"]["spec"]["nodeName"] = node
        api.meanwhile = lambda: True
        assert ("does not answer" in service.ask("POST", "/bind", binding(0, "h5"))[1]["Error"]) == (not node)
        assert [job["placed"] for job in service.ask("GET", "/jobs")[1]["jobs"]] == [placed]


def test_a_pod_that_was_never_asked_about_is_read_from_the_api_server():
    with api_server() as api, running(api=KubeApi(f"http://127.0.0.1:{api.server_port}")) as service:
        assert "not found" in service.ask("POST", "/bind", binding(0, "h5"))[1]["Error"]
        api.pods["new-0"] = job_pod(0, row("new", 4))
        assert service.ask("POST", "/bind", binding(0, "h5"))[1]["Error"] == ""
        assert service.ask("GET", "/jobs")[1]["jobs"][0]["placed"] == ["h5", "h5"]
        api.pods["new-0"]["metadata"]["uid"] = "other"
        assert "has another uid" in service.ask("POST", "/bind", binding(0, "h6"))[1]["Error"]
        api.pods["new-1"] = job_pod(1, None)  # of no job: bound, and nothing is reserved
        assert service.ask("POST", "/bind", binding(1, "h6"))[1]["Error"] == ""


def test_gpus_that_another_job_has_are_not_bound():
    with api_server() as api, running(api=KubeApi(f"http://127.0.0.1:{api.server_port}")) as service:
        service.ask("POST", "/jobs", {"jobs": [row("old", 2, placement=["h5", "h5"])]})
        service.ask("POST", "/filter", {"Pod": job_pod(0, row("new", 4)), "NodeNames": NAMES})
        assert "takes 2 GPUs of h5" in service.ask("POST", "/bind", binding(0, "h5"))[1]["Error"]
        assert api.asked == []


def test_without_an_api_server_nothing_is_bound():
    with running() as service:
        assert "needs place serve --kube-api" in service.ask("POST", "/bind", binding(0, "h5"))[1]["Error"]
        assert service.ask("POST", "/bind", {"podName": "a"})[0] == 400
    for url, token in (("ftp://a", None), ("http://", None), ("http://10.0.0.1:8001", "x" * 16)):
        with pytest.raises(InputError, match="--kube"):
            KubeApi(url, token)
    with running(api=KubeApi("http://127.0.0.1:9")) as service:
        assert "does not answer" in service.ask("POST", "/bind", binding(0, "h5"))[1]["Error"]
