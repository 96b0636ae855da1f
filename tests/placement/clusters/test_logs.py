import json
import re

import pytest

from commsim.core.errors import InputError
from commsim.placement.cli.cluster import ClusterTraceConfig
from commsim.placement.clusters.logs import READERS, read_log
from commsim.placement.clusters.reading_summary import ReadingSummary

MODELS = ("vgg16", "bert")
HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1,u,v,8,64,1,COMPLETED,2020-04-01 00:01:00,2020-04-01 00:01:05,2020-04-01 00:02:05,60,5\n"
    "2,u,v,0,4,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:00:09,9,0\n"
    "3,u,v,16,96,2,FAILED,2020-04-01 00:00:30,2020-04-01 00:00:30,2020-04-01 01:00:30,3600,0\n"
)
KALOS = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,"
    "end_time,fail_time,stop_time,duration,queue,gpu_time\n"
    "x,u,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,"
    "2023-05-17 11:02:08+00:00,,,60.0,10.0,3840.0\n"
    "y,u,1,1.0,8,50,,Eval,COMPLETED,2023-05-17 13:00:58+02:00,,,,,5.0,,5.0\n"
)
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p0,12000,16384,1,1000,,LS,Running,100,200,150\n"
    "p1,6000,12288,2,1000,V100M16|V100M32,LS,Running,90,290,90\n"
    "p2,6000,12288,1,460,,BE,Pending,95,300,\n"
    "p3,6000,12288,0,0,,LS,Running,95,300,96\n"
)
TASKS = (
    "j1,worker,4,Terminated,1000.0,1600.0,600.0,29.3,100.0,V100\n"
    "j1,ps,1,Terminated,1010.0,1500.0,200.0,10.0,,\n"
    "j2,tensorflow,1,Failed,900.0,950.0,600.0,20.0,50.0,T4\n"
    "j3,tensorflow,1,Running,900.0,,600.0,20.0,50.0,T4\n"
)
SACCT = (
    "JobID|User|Submit|Start|End|AllocTRES|State\n"
    "101|u|2026-01-05T08:00:00|2026-01-05T08:00:10|2026-01-05T09:00:10|billing=8,cpu=64,gres/gpu:h100=16,gres/gpu=16|COMPLETED\n"
    "101.batch|u|2026-01-05T08:00:10|2026-01-05T08:00:10|2026-01-05T09:00:10|cpu=64,gres/gpu=16|COMPLETED\n"
    "102|u|2026-01-05T08:05:00|2026-01-05T08:05:00|2026-01-05T08:35:00|cpu=8,gres/gpu:a100=4,gres/gpu:h100=2|TIMEOUT\n"
    "103|u|2026-01-05T08:06:00|None|2026-01-05T08:07:00||CANCELLED by 1000\n"
    "104|u|2026-01-05T08:07:00|2026-01-05T08:07:00|2026-01-05T08:17:00|cpu=64|COMPLETED\n"
    "105|u|2026-01-05T08:09:00|2026-01-05T08:09:00|Unknown|gres/gpu=32|RUNNING\n"
)


def test_sacct_counts_gpus_of_all_types_and_says_what_it_leaves_out(tmp_path):
    said = ReadingSummary()
    jobs = read_log("sacct", written(tmp_path, SACCT), MODELS, said=said)
    assert [(job.name, job.submit, job.n_gpus, job.duration) for job in jobs] == [
        ("101", 0.0, 16, 3600.0), ("102", 300.0, 6, 1800.0)
    ]  # fmt: skip
    assert said.told() == ["4 rows left out: 1 steps of jobs, 1 that never started, 1 without GPUs, 1 still running"]


def attempt(start, end, *counts):
    detail = [{"ip": f"m{i}", "gpus": [f"gpu{k}" for k in range(n)]} for i, n in enumerate(counts)]
    return {"start_time": start, "end_time": end, "detail": detail}


PHILLY = [
    {"status": "Pass", "vc": "v", "jobid": "a1", "user": "u", "submitted_time": "2017-10-07 01:11:39", "attempts": [
        attempt("2017-10-07 01:12:09", "2017-10-07 01:13:23", 8),
        attempt("2017-10-07 02:00:00", "2017-10-07 02:01:00", 8, 4)]},
    {"status": "Killed", "jobid": "a2", "user": "u", "submitted_time": "2017-10-07 01:10:39", "attempts": []},
    {"status": "Pass", "vc": "v", "jobid": "a3", "user": "u", "submitted_time": "2017-10-07 01:11:09", "attempts": [
        attempt("2017-10-07 01:12:09", None, 1), attempt("2017-10-07 01:12:09", "2017-10-07 01:12:10", 1)]},
]  # fmt: skip


def written(folder, text, name="log.csv"):
    path = folder / name
    path.write_text(text)
    return path


def facts(jobs):
    return [(job.name, job.submit, job.n_gpus, job.duration) for job in jobs]


def test_helios_keeps_the_jobs_with_gpus(tmp_path):
    jobs = read_log("helios", written(tmp_path, HELIOS), MODELS)
    assert facts(jobs) == [("3", 0.0, 16, 3600.0), ("1", 30.0, 8, 60.0)]
    assert [job.cpu for job in jobs] == [96.0, 64.0]
    assert {job.model for job in jobs} <= set(MODELS)


def test_acme_has_time_zones_and_the_memory_of_a_pod(tmp_path):
    jobs = read_log("acme", written(tmp_path, KALOS), MODELS)
    assert facts(jobs) == [("x", 0.0, 64, 60.0), ("y", 0.0, 1, 5.0)]  # 13:00:58+02:00 is the same instant
    assert jobs[0].memory == 8 * 1000 * 2.0**30


def test_pai_2023_pods_wait_until_they_are_scheduled(tmp_path):
    jobs = read_log("pai2023", written(tmp_path, PODS), MODELS)
    assert facts(jobs) == [("p1", 0.0, 2, 200.0), ("p0", 10.0, 1, 50.0)]
    assert (jobs[1].cpu, jobs[1].memory) == (12.0, 16 * 2.0**30)


@pytest.mark.parametrize(
    "head", ["", "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"]
)
def test_pai_2020_sums_the_tasks_of_a_job_with_and_without_a_header(tmp_path, head):
    jobs = read_log("pai2020", written(tmp_path, head + TASKS), MODELS)
    assert facts(jobs) == [("j2", 0.0, 1, 50.0), ("j1", 100.0, 4, 600.0)]
    assert jobs[1].cpu == 24.0


def test_philly_adds_up_attempts_and_takes_the_largest(tmp_path):
    jobs = read_log("philly", written(tmp_path, json.dumps(PHILLY), "cluster_job_log"), MODELS)
    assert facts(jobs) == [("a3", 0.0, 1, 1.0), ("a1", 30.0, 12, 74.0 + 60.0)]


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("helios", HELIOS.replace(",8,64,", ",eight,64,"), "line 2: gpu_num must be a number, got 'eight'"),
        ("helios", HELIOS.replace("2020-04-01 00:00:30,2020-04-01 00:00:30", "April,x"), "line 4: submit_time must be"),
        ("helios", HELIOS.replace("gpu_num", "gpus"), "line 1: lacks the columns gpu_num"),
        ("acme", KALOS.replace("1.0,8", "1.5,8"), "line 3: gpu_num must be a whole number"),
        ("pai2023", PODS.replace("6000,12288,2", "6000"), "line 3: 11 cells are required"),
        ("pai2020", TASKS.replace("1600.0", "soon"), "line 1: end_time must be a number, got 'soon'"),
        ("pai2020", PODS, "cells are required|lacks the columns"),
        ("helios", HELIOS.split("1,u")[0], "has no job that ran on GPUs"),
        ("philly", "{}", "must be a list of jobs"),
        ("philly", '[{"jobid": "a"}]', "job 0: attempts must be a list"),
        ("philly", "[3]", "job 0 must be a table"),
        ("philly", json.dumps(PHILLY).replace("01:13:23", "25:13:23"), "job 0: end_time must be a date"),
        ("philly", '[{"attempts": [{"start_time": "1", "end_time": "2", "detail": [3]}]}]', "detail must be a list"),
        ("philly", "[", "log.csv"),
        (
            "sacct",
            SACCT.replace("|2026-01-05T09:00:10|billing", "|noon|billing"),
            "line 2: End must be seconds or a date",
        ),
        ("sacct", HELIOS, "line 1: lacks the columns JobID"),
        ("slurm", "", "unknown kind of log 'slurm'; known: philly"),
    ],
)
def test_a_log_that_is_not_what_it_should_be_is_refused(tmp_path, kind, text, message):
    with pytest.raises(InputError, match=message):
        read_log(kind, written(tmp_path, text), MODELS)


@pytest.mark.parametrize("kind", READERS)
def test_the_models_are_drawn_by_the_seed(tmp_path, kind):
    text = {"philly": json.dumps(PHILLY), "helios": HELIOS, "acme": KALOS, "pai2020": TASKS, "pai2023": PODS,
            "sacct": SACCT}[kind]  # fmt: skip
    path = written(tmp_path, text)
    models = tuple(f"m{i}" for i in range(1000))
    assert read_log(kind, path, models, 1) == read_log(kind, path, models, 1) != read_log(kind, path, models, 2)


def test_shares_of_a_gpu_and_rows_that_vanish_are_counted(tmp_path):
    head = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    )
    pods = ["a,4000,1,1,100,,BE,Running,0,3600,0", "b,4000,1,1,250,,BE,Running,0,3600,0", "c,4000,1,2,1000,,,,0,60,0",
            "d,4000,1,0,0,,BE,Running,0,3600,0", "e,4000,1,1,1000,,BE,Pending,10,400,"]  # fmt: skip
    said = ReadingSummary()
    jobs = read_log("pai2023", written(tmp_path, "\n".join([head, *pods, ""])), MODELS, said=said)
    assert [job.n_gpus for job in jobs] == [1, 1, 2]
    assert said.told() == [
        "2 jobs on shares of a GPU (0.35 GPUs together) have a whole GPU each: 2 GPUs",
        "2 rows left out: 1 without GPUs, 1 never scheduled, or not deleted",
    ]


@pytest.mark.parametrize("kind", ["philly", "helios", "pai2020", "pai2023"])
def test_every_log_says_how_many_rows_it_leaves_out(kind, tmp_path):
    text = {"philly": json.dumps(PHILLY), "helios": HELIOS, "pai2020": TASKS, "pai2023": PODS}[kind]
    said = ReadingSummary()
    read_log(kind, written(tmp_path, text), MODELS, said=said)
    assert sum(said.left_out.values()) > 0
    assert "left out" in said.told()[-1]


def test_the_help_names_every_kind_of_log():
    said = ClusterTraceConfig.__dataclass_fields__["kind"].metadata["help"]
    assert re.findall(r"\w+", said.partition(": ")[2].replace(" or ", " ")) == list(READERS)
