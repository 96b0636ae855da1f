"""/metrics: what was asked and answered is counted, by Prometheus's own reader."""

import http.client
import sys

import pytest
from place_service import LIMIT_S, pod, row, running


def metrics_of(service, token=None):
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=LIMIT_S)
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def samples(text):
    parser = pytest.importorskip("prometheus_client.parser")
    families = parser.text_string_to_metric_families(text)
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def test_requests_are_counted_by_path_and_status_and_jobs_and_gpus_told():
    with running() as service:
        free = samples(metrics_of(service)[1])["commsim_free_gpus",]
        assert service.ask("POST", "/jobs", {"jobs": [row("old", 2, placement=["h0", "h1"])]})[0] == 200
        for _ in range(3):
            service.ask("POST", "/prioritize", {"Pod": pod(), "NodeNames": ["h0"]})
        service.ask("POST", "/prioritize", {"Pod": 1})
        service.ask("GET", "/nowhere/1")
        service.ask("GET", "/nowhere/2")
        found = samples(metrics_of(service)[1])
    count = {(s[1][1], s[2][1]): n for s, n in found.items() if s[0] == "commsim_requests_total"}
    assert count["/prioritize", "200"] == 3
    assert count["/prioritize", "400"] == 1
    assert count["/jobs", "200"] == 1
    assert count["other", "404"] == 2
    assert found["commsim_request_seconds_count", ("path", "/prioritize")] == 4
    assert found["commsim_jobs",] == 1
    assert found["commsim_free_gpus",] == free - 2


def test_pods_that_are_ignored_are_counted_and_named(capfd):
    with running(log=True) as service:
        for one in (pod("unheard-of"), pod(row(), gpus=0), {"metadata": {}}, {}):
            assert service.ask("POST", "/filter", {"Pod": one, "NodeNames": ["h0"]})[1]["NodeNames"] == ["h0"]
        found = samples(metrics_of(service)[1])
    said = capfd.readouterr().err
    assert "pod 'pod': ignored, it has no request for nvidia.com/gpu" in said
    assert said.count("ignored, it has no known job") == 3
    assert found["commsim_ignored_pods_total", ("reason", "no request for nvidia.com/gpu")] == 1
    assert found["commsim_ignored_pods_total", ("reason", "no known job")] == 3


def test_metrics_need_the_token_and_the_client(monkeypatch):
    with running(token="a-token-of-some-length") as service:
        assert metrics_of(service)[0] == 401
        assert metrics_of(service, "a-token-of-some-length")[0] == 200
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with running() as service:
        status, text = metrics_of(service)
    assert status == 503
    assert "pip install 'commsim[serve]'" in text
