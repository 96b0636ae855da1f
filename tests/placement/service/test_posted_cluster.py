"""A cluster that a request brings: as a file would, but without opening one."""

import jsonschema
import pytest
from place_service import row, running

from commsim.core.errors import InputError
from commsim.placement.cluster import read_cluster
from commsim.placement.service.job_store import JobStore
from commsim.placement.service.placement_service import PlacementService, Preferences

SPEC = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,bandwidth=50Gbps"
TABLES = {"topology": {"spec": SPEC}, "hosts": {"gpus": 4, "busy": {"h0": 1}}}


def test_a_service_without_a_cluster_gets_one_by_a_request():
    with running(None) as service:
        assert service.ask("GET", "/healthz")[0] == 200
        assert service.ask("GET", "/jobs") == (200, {"version": 0, "jobs": []})
        for method, path, body in (
            ("POST", "/place", {"jobs": [row()]}), ("POST", "/jobs", {"jobs": [row()]}), ("GET", "/cluster", None),
            ("POST", "/jobs", {"jobs": []}),
        ):  # fmt: skip
            status, answer = service.ask(method, path, body)
            assert status == (400 if body == {"jobs": []} else 409)
            assert status == 400 or "POST /cluster" in answer["error"]
        status, said = service.ask("POST", "/cluster", TABLES)
        assert status == 200
        name = read_cluster(TABLES).network.name
        known = {"version": 1, "network": name, "hosts": 4, "gpus": 16}
        assert said == known | {"busy": 1, "of_jobs": 0, "free": 15}
        assert service.ask("GET", "/cluster") == (200, said)
        service.ask("POST", "/jobs", {"jobs": [row("b", 6) | {"placed": ["h1x4", "h2"]}]})  # busy left jobs out
        assert service.ask("GET", "/cluster")[1] == known | {"version": 2, "busy": 6, "of_jobs": 5, "free": 10}
        service.ask("DELETE", "/jobs/b")
        placed = service.ask("POST", "/place", {"jobs": [row("a", 15)]})[1]["candidates"][0]["placement"]["a"]
        assert len(placed) == 15


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"topology": {}}, {"topology": {"spec": "leaf_spin"}}, {"topology": {"spec": SPEC}},
        {"topology": {"spec": SPEC}, "hosts": {"gpus": -1}}, {"topology": {"spec": SPEC}, "hosts": {"gpu": 1}},
        {"topology": {"name": "leaf_spine", "n_leaves": 0}, "hosts": {"gpus": 1}}, TABLES | {"racks": {}},
        {"topology": {"spec": SPEC}, "hosts": {"gpus": 4, "busy": {"h9": 1}}},
    ],
)  # fmt: skip
def test_wrong_tables_are_refused_as_a_file_is(wrong):
    with pytest.raises(InputError) as file:
        read_cluster(wrong)
    with running(None) as service:
        status, answer = service.ask("POST", "/cluster", wrong)
        assert status == 400
        if "topology" in wrong and "racks" not in wrong:
            assert answer["error"].startswith(str(file.value))
        assert "; the body must be like {" in answer["error"]
        assert service.ask("GET", "/cluster")[0] == 409


@pytest.mark.parametrize(
    "topology",
    [
        {"file": "net"}, {"spec": "net.toml"}, {"spec": "own.py:network"}, {"spec": "own.PY:network"},
        {"spec": "node.xml@star:machines=2"}, {"spec": "dgx-h100@own.py:network"},
        {"name": "rail_optimized", "n_hosts": 2, "preset": "node.txt:gpu=hopper"},
    ],
)  # fmt: skip
def test_no_file_is_read_or_run_for_a_request(topology, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("open('ran', 'w').close()\n")
    with running(None) as service:
        status, answer = service.ask("POST", "/cluster", {"topology": topology, "hosts": {"gpus": 1}})
        assert status == 400
        said = ("a request cannot name a file", "cannot execute", "unknown topology", "expected key=value")
        assert any(words in answer["error"] for words in said)
    assert not (tmp_path / "ran").exists()


def test_another_cluster_has_to_hold_the_jobs_that_are_known():
    with running(None) as service:
        service.ask("POST", "/cluster", TABLES)
        service.ask("POST", "/jobs", {"jobs": [row("a", 2, placement=["h3x2"])]})
        before = service.ask("GET", "/jobs")[1]
        smaller = {"topology": {"spec": "star:n_hosts=2"}, "hosts": {"gpus": 4}}
        status, answer = service.ask("POST", "/cluster", smaller)
        assert (status, "job a is placed on 'h3'" in answer["error"]) == (400, True)
        assert service.ask("GET", "/jobs")[1] == before
        assert service.ask("GET", "/cluster")[1]["gpus"] == 16
        status, said = service.ask("POST", "/cluster", {"topology": {"spec": "star:n_hosts=4"}, "hosts": {"gpus": 8}})
        assert (status, said["gpus"], said["version"]) == (200, 32, before["version"] + 1)
        assert service.ask("GET", "/jobs")[1]["jobs"] == before["jobs"]


def test_a_service_that_starts_again_knows_the_cluster_of_its_store(tmp_path):
    path = tmp_path / "jobs.sqlite"
    with running(None, store=JobStore(path)) as service:
        service.ask("POST", "/cluster", TABLES)
        service.ask("POST", "/jobs", {"jobs": [row("a", 2, placement=["h3x2"])]})
    with running(None, store=JobStore(path)) as service:
        assert service.ask("GET", "/cluster")[1]["gpus"] == 16
        assert service.ask("GET", "/jobs")[1]["jobs"][0]["placed"] == ["h3", "h3"]


def test_jobs_of_a_store_need_a_cluster(tmp_path):
    store = JobStore(tmp_path / "jobs.sqlite")
    store.put([row("a", 2)], 1)
    with pytest.raises(InputError, match="the store of jobs: there is no cluster yet"):
        PlacementService(None, Preferences(), store)
    store.close()


def test_its_schema_is_that_of_the_file_without_files():
    with running(None) as service:
        schema = service.ask("GET", "/schema")[1]["Cluster"]
    jsonschema.validate(TABLES, schema)
    for wrong in ({"topology": {"file": "net.toml"}}, {"hosts": {}}, TABLES | {"racks": {}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_a_cluster_is_looked_at_with_as_many_hashes_as_asked_for():
    for hashes, n in ((None, 8), (3, 3)):
        service = PlacementService(read_cluster(TABLES), Preferences(hashes=hashes))
        assert len(service.state.seeds) == n
