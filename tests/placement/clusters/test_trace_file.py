import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.placement.clusters.models import MODELS
from commsim.placement.clusters.reading_summary import ReadingSummary
from commsim.placement.clusters.trace_file import read_trace, write_trace
from commsim.placement.clusters.trace_job import TraceJob
from commsim.placement.clusters.traces import load_trace
from commsim.training.sharing.periodic import GBPS, JobPhase

HEAD = "job,submit_s,gpus,duration_s,model\n"


def write(folder, text):
    path = folder / "trace.csv"
    path.write_text(text)
    return path


def test_a_trace_is_read_in_order_of_submission(tmp_path):
    text = HEAD.strip() + ",deadline_s,cpu,memory_GiB,max_gpus\nb,5,2,60,vgg16,100,8,3,4\na,1.5,1,10,bert,,,,\n"
    a, b = read_trace(write(tmp_path, text))
    assert (a.name, a.submit, a.n_gpus, a.duration, a.model, a.deadline) == ("a", 1.5, 1, 10.0, "bert", None)
    assert (b.deadline, b.cpu, b.memory, b.min_gpus, b.max_gpus) == (100.0, 8.0, 3 * 2.0**30, 2, 4)


def test_columns_of_the_user_s_own_reach_policies_and_are_written_back(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("job,submit_s,gpus,duration_s,model,own_priority\na,0,1,60,vgg16,7\nb,1,1,60,vgg16,\n")
    jobs = read_trace(path)
    assert [job.own for job in jobs] == [{"priority": "7"}, {"priority": ""}]
    write_trace(path, jobs)
    assert read_trace(path) == jobs


def test_shares_of_a_gpu_are_whole_gpus_and_counted(tmp_path):
    said = ReadingSummary()
    jobs = read_trace(write(tmp_path, HEAD + "a,0,0.25,60,vgg16\nb,1,.5,60,vgg16\nc,2,2.0,60,vgg16\n"), said)
    assert [job.n_gpus for job in jobs] == [1, 1, 2]
    assert said.told() == ["2 jobs on shares of a GPU (0.75 GPUs together) have a whole GPU each: 2 GPUs"]


def test_phases_are_offset_duration_and_rate(tmp_path):
    text = "job,submit_s,gpus,iterations,iter_time_ms,phases\na,0,2,100,255,141:100:37;250:2:10:4\n"
    (job,) = read_trace(write(tmp_path, text))
    assert job.period == pytest.approx(0.255)
    assert job.phases == (JobPhase(0.141, 0.1, 37 * GBPS), JobPhase(0.25, 0.002, 10 * GBPS, 0.004))


times = st.floats(0, 1e6, allow_subnormal=False)


@given(times, st.integers(1, 64), st.floats(1e-3, 1e6), st.booleans(), st.booleans())
def test_what_is_written_reads_back_the_same(tmp_path_factory, submit, gpus, work, by_time, by_model):
    path = tmp_path_factory.mktemp("trace") / "t.csv"
    amount = {"duration": work} if by_time else {"iterations": work}
    what = {"model": "vgg16"} if by_model else {"period": 0.25, "phases": (JobPhase(0.125, 0.0625, 4 * GBPS, 0.03125),)}
    job = TraceJob("one, two", submit, gpus, deadline=submit + 10.0, cpu=3.5, max_gpus=2 * gpus, **amount, **what)
    write_trace(path, [job])
    assert read_trace(path) == (job,)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,0,2,60", "line 2: 5 cells are required, got 4"),
        ("a,0,1.5,60,vgg16", "line 2: gpus must be a whole number, or a share of one GPU such as 0.25, got '1.5'"),
        ("a,x,2,60,vgg16", "line 2: submit_s must be a number, got 'x'"),
        ("a,-1,2,60,vgg16", "line 2: a: submit_s must be 0..1e+10, got -1"),
        ("a,0,0,60,vgg16", "line 2: a: gpus must be 1..1048576, got 0"),
        ("a,0,1,,vgg16", "line 2: a: give duration_s or iterations"),
        ("a,0,1,nan,vgg16", "line 2: a: give duration_s or iterations"),
        ("a,0,1,inf,vgg16", "line 2: duration_s must be a number, got 'inf'"),
        ("a,0,1,0,vgg16", "line 2: a: duration_s must be more than 0"),
        ("a,0,1,60,", "line 2: a: give a model or iter_time_ms"),
        (",0,1,60,vgg16", "line 2: job must be printable text"),
        ('"a,0,1,60,vgg16', "line 2: unexpected end of data"),
        ("a,0,1,60,vgg16\na,0,1,60,vgg16", "the job 'a' appears twice"),
    ],
)
def test_a_bad_line_is_named_with_its_number(tmp_path, line, message):
    path = write(tmp_path, HEAD + line + "\n")
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (HEAD, "has no job"),
        ("job,gpus\na,1\n", "line 1: lacks the columns submit_s"),
        ("job,submit_s,gpus,gpus\na,0,1,1\n", "line 1: a column is named twice"),
        ("job,submit_s,gpus,colour\na,0,1,red\n", "unknown column 'colour'"),
        ("job,submit_s,gpus,iterations,iter_time_ms,phases\na,0,1,5,100,1:2\n", "phases must be offset_ms"),
        ("job,submit_s,gpus,iterations,iter_time_ms,phases\na,0,1,5,100,90:20:1;95:1:1\n", "line 2: a: phase 1"),
        ("job,submit_s,gpus,iterations,model,phases\na,0,1,5,vgg16,1:2:3\n", "iter_time_ms must be more than 0"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_trace(write(tmp_path, text))


def test_a_file_with_other_names_of_columns_is_read_as_it_is(tmp_path):
    """It had to be rewritten: only columns of these names were read, and others than these refused."""
    own = write(tmp_path, "id,submitted_at,num_gpus,runtime,model,user\na,5,2,60,vgg16,eve\n")
    names = {"job": "id", "submit_s": "submitted_at", "gpus": "num_gpus", "duration_s": "runtime"}
    (job,) = load_trace(f"{own}:{','.join(f'{to}={name}' for to, name in names.items())}", 8, MODELS)
    assert read_trace(own, names=names) == (job,)
    (plain,) = read_trace(write(tmp_path, HEAD + "a,5,2,60,vgg16\n"))
    assert dataclasses.replace(job, own={}) == plain
    assert job.own == {"user": "eve"}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({}, "lacks the columns job, submit_s, gpus; got id, n, at; .*:job=NAME,... reads other names"),
        ({"job": "id", "gpus": "m", "submit_s": "at"}, "lacks the columns m; got id, n, at"),
        ({"job": "id", "n_gpus": "n"}, "no column is 'n_gpus'; known: job, submit_s, gpus"),
    ],
)
def test_wrong_names_of_columns_are_told(tmp_path, names, message):
    with pytest.raises(InputError, match=message):
        read_trace(write(tmp_path, "id,n,at\na,1,0\n"), names=names)


def test_a_file_that_is_missing_or_not_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_trace(tmp_path / "none.csv")
    (tmp_path / "trace.csv").write_bytes(HEAD.encode() + b"\xff\xfe,0,1,1,vgg16\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_trace(tmp_path / "trace.csv")


def test_a_number_of_gpus_on_each_host_is_read_and_written_back(tmp_path):
    text = HEAD.strip() + ",gpus_per_host\na,0,8,60,vgg16,4\nb,1,2,60,vgg16,\n"
    jobs = read_trace(write(tmp_path, text))
    assert [job.gpus_per_host for job in jobs] == [4, None]
    write_trace(tmp_path / "again.csv", jobs)
    assert read_trace(tmp_path / "again.csv") == jobs
    for row, message in (
        ("a,0,8,60,vgg16,3\n", "gpus_per_host must be a divisor of 8 GPUs, got 3"),
        ("a,0,8,60,vgg16,0\n", "gpus_per_host must be a divisor of 8 GPUs, got 0"),
        ("a,0,8,60,vgg16,x\n", "gpus_per_host"),
    ):
        with pytest.raises(InputError, match=message):
            read_trace(write(tmp_path, HEAD.strip() + ",gpus_per_host\n" + row))
    with pytest.raises(InputError, match="gpus_per_host goes with one number of GPUs, not min_gpus and max_gpus"):
        read_trace(write(tmp_path, HEAD.strip() + ",gpus_per_host,max_gpus\na,0,8,60,vgg16,4,16\n"))
