"""What people write briefly means the same everywhere: a library for its all-reduce, a table for a topology."""

import json

import pytest
from remark_codes import codes

import commsim as cs
from commsim.core.errors import InputError
from commsim.sweep.table import read_table

MACHINES = "dgx-h100@star:machines=2"


def test_a_library_by_itself_is_its_all_reduce_in_files_of_jobs_and_sweeps(tmp_path):
    alone = cs.predict("nccl", MACHINES, "1MB").time
    jobs, sweep = tmp_path / "jobs.json", tmp_path / "sweep.json"
    jobs.write_text(json.dumps({"job": [{"collective": "nccl", "ranks": "0-15", "size": "1MB"}]}))
    assert cs.solve(cs.scenario_of(None, MACHINES, jobs=jobs, overhead="0us")).results[0].time == alone
    table = {"name": "dgx-h100@star", "machines": 2}
    sweep.write_text(json.dumps({"topology": table, "collective": {"name": "nccl", "size": "1MB"}}))
    cs.run_sweep(sweep, tmp_path / "out", "serial")
    assert read_table(tmp_path / "out").column("time_s").to_pylist() == [alone]


def test_a_table_of_a_topology_is_a_network(tmp_path):
    path = tmp_path / "short.toml"
    path.write_text('[topology]\nname = "dgx-h100@leaf_spine"\nmachines = 4\nn_leaves = 2\nn_spines = 2\n')
    assert cs.load_network(str(path)) == cs.load_network("dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=2")
    path.write_text('[topology]\nspec = "star:n_hosts=4"\n[hosts]\ngpus = 2\n')
    assert cs.load_network(str(path)).nodes[:5] == cs.load_network("star:n_hosts=4").nodes
    assert len(cs.load_network(str(path)).endpoints) == 8
    path.write_text('[topology]\nfile = "short.toml"\n')
    with pytest.raises(InputError, match="names a file with nodes and links"):
        cs.load_network(str(path))


def test_machines_without_named_gpus_say_that_a_plain_ring_runs():
    plain = cs.scenario_of(None, "mesh_host:n_gpus=4,n_nics=2@star:machines=2")
    assert "gpus-unknown" in codes(plain.remarks)
    named = cs.scenario_of(None, "mesh_host:n_gpus=4,n_nics=2,gpu=ampere@star:machines=2")
    assert named.collective == "nccl_all_reduce"
