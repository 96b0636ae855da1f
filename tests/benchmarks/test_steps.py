"""``python -m benchmarks.steps``: rows of the files of published steps, also of setups that are not known."""

import json
from dataclasses import replace

from benchmarks.steps.command import main
from benchmarks.steps.intervals import intervals_of
from benchmarks.steps.predictions import predictions, with_blind
from benchmarks.steps.setups import read_setups

BRIDGE = """system,setup,operation,ranks,size,metric,value,unit,source
DGX-H100,LLAMA3_8B; Precision=FP8 GBS=128 MBS=1 Sequence_Length=8192 FSDP=8 TP=1 PP=1 CP=1 EP=1,train step,8,128,\
tokens_per_s_per_gpu,14000 (13000),tokens/s/GPU,a page (26.02 NeMo Container)
DGX-H100,LLAMA3_8B; Precision=FP8 GBS=32 MBS=1 Sequence_Length=8192 TP=2 PP=2 CP=1 VP=2 EP=n/a,train step,8,128,\
tokens_per_s_per_gpu,12000,tokens/s/GPU,a page (26.02 NeMo Container)
DGX-X900,LLAMA3_8B; GBS=128 MBS=1 Sequence_Length=8192 TP=1 PP=1 CP=1,train step,8,128,\
tokens_per_s_per_gpu,14000,tokens/s/GPU,a page
DGX-H100,NewModel_9B; GBS=128 MBS=1 Sequence_Length=8192 TP=1 PP=1 CP=1,train step,8,128,\
tokens_per_s_per_gpu,14000,tokens/s/GPU,a page
DGX-B300,LLAMA3_8B; GBS=128 MBS=x,train step,8,128,tokens_per_s_per_gpu,n/a,tokens/s/GPU,a page
"""
MLPERF = """system,gpu,ranks,benchmark,tp,pp,cp,vp,micro_batch,global_batch,micro_batches,sequence,nccl,network,\
step_s,source
one,2x8 NVIDIA B300-SXM,16,llama31_8b,1,1,1,,1,32,2,8192,,,0.4,mlcommons/training_results_v6.0 one
two,NVIDIA H100,24,llama31_405b,,,,,,7,,8192,,,1.0,mlcommons/training_results_v6.0 two
"""


def test_rows_are_predicted_or_say_why_not(tmp_path, capsys):
    (tmp_path / "megatron_bridge.csv").write_text(BRIDGE)
    (tmp_path / "mlperf_steps.csv").write_text(MLPERF)
    assert main(["--data", str(tmp_path), "--json", str(tmp_path / "out.json"), "--rows"]) == 0
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert [bool(row["predicted_s"]) for row in rows] == [True, True, False, False, False, True, False]
    assert all(row["predicted_s"] or row["left_out"] for row in rows)
    assert rows[0]["measured_s"] == 128 * 8192 / (14000 * 8)
    assert not any(row["fitted"] for row in rows)
    assert "no accelerator of the table in 'DGX-X900'" in rows[2]["left_out"]
    assert "as in the median of" in rows[5]["assumed"]
    assert "unseen" in capsys.readouterr().out


def test_a_folder_without_files_is_one_line(tmp_path, capsys):
    assert main(["--data", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_step_that_trains_adapters_only_is_known_by_its_operations(tmp_path):
    flops = BRIDGE.splitlines()[2].replace("tokens_per_s_per_gpu,12000", "model_tflops_per_gpu,400")
    (tmp_path / "megatron_bridge.csv").write_text("\n".join([*BRIDGE.splitlines()[:3], flops]))
    assert [one.frozen for one in read_setups(str(tmp_path))] == [False, True]


def test_own_rows_are_read_and_one_that_cannot_be_predicted_ends_nothing(tmp_path, capsys):
    (tmp_path / "steps.csv").write_text(
        "model,gpu,ranks,micro_batch,global_batch,sequence,sharding,recompute,tokens_per_s_per_gpu,source\n"
        "mpt-7b,h100,8,6,48,2048,full,0,10643,a page\nno-such,h100,8,6,48,2048,full,0,10643,a page\n"
    )
    (tmp_path / "published.csv").write_text(
        "system,setup,operation,ranks,size,metric,value,unit,source\n"
        'TPU v5e-128 x 1 pods,"16B, MaxText",train step,128,,tflops_per_chip,120,TFLOP/s/chip,a page\n'
    )
    assert main(["--data", str(tmp_path), "--json", str(tmp_path / "out.json")]) == 0
    told = capsys.readouterr().out
    assert "the sides of a slice of 128 chips are not known" in told
    assert "unknown model 'no-such'" in told
    rows = [row for row in json.loads((tmp_path / "out.json").read_text())["rows"] if row["file"] == "steps.csv"]
    assert [bool(row["predicted_s"]) for row in rows] == [True, False]
    assert rows[0]["predicted_s"] == rows[0]["blind_s"]


def test_programs_of_2021_hid_no_traffic_and_sharded_nothing(tmp_path):
    (tmp_path / "published.csv").write_text(
        "system,setup,operation,ranks,size,metric,value,unit,source\n"
        '"A100 80 GB, Selene","18.4B, TP 8, PP 1, batch 1024",train step,256,,tflops_per_gpu,135,TFLOP/s/GPU,Megatron\n'
    )
    (one,) = read_setups(str(tmp_path))
    assert (one.model, one.sharding, one.exposes) == ("megatron-18.4b", "none", "tensor,pipeline,data")
    (row,) = predictions([one])
    assert row.step is not None
    assert row.step.setting.overlap == ("context",)


def test_intervals_are_of_setups_and_leave_calibrated_rows_out(tmp_path):
    """Ten setups of one batch more each, measured at 1.0 to 1.9 of what is predicted; the second twice."""
    head = "model,gpu,ranks,micro_batch,global_batch,sequence,sharding,recompute,tokens_per_s_per_gpu,source\n"
    lines = [f"mpt-7b,h100,8,1,{8 * n},2048,full,0,1000,page {n}" for n in range(1, 11)]
    (tmp_path / "steps.csv").write_text(head + "\n".join([*lines, lines[1]]))
    rows = with_blind(predictions(read_setups(str(tmp_path))))
    measured = [
        replace(one, setup=replace(one.setup, measured=one.blind * (0.9 + 0.1 * int(one.setup.source[5:]))))
        for one in rows
    ]
    (interval,) = intervals_of(measured)
    assert (interval.calibrated, interval.experts, interval.setups) == (False, False, 10)
    assert (interval.low, interval.high) == (1.09, 1.81)
