"""The words in which people say what NCCL is on: the same as flags of ``commsim nccl`` and as parameters."""

import dataclasses

import pytest

from collectives.nccl.launch import NcclParameters
from collectives.nccl.rules import chunk_bytes
from commsim.core.errors import InputError
from commsim.core.placement import place
from commsim.nccl.cli.nccl_flags import NcclConfig
from commsim.nccl.of_network import NcclOptions, setting_of
from commsim.nccl.option_words import WORDS, read_words
from commsim.nccl.prediction import call_of
from commsim.nccl.tuning_table import Cell
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network

TWO = "dgx-h100@star:machines=2"


def test_every_word_is_a_flag_of_the_verb_and_a_field_of_what_is_given():
    for word, (field, _) in WORDS.items():
        assert word in NcclConfig.__annotations__
        assert field in NcclOptions.__dataclass_fields__


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("channels", "4:20GB/s"), ("nvls", "none"), ("nvls", "16:20GB/s"), ("nic", "25GB/s"), ("net_type", "SYS"),
        ("net_latency", "20us"), ("gpu", "ampere"), ("cpu", "amd"), ("min_ctas", "32"), ("max_ctas", "4"),
        ("buffer", "8MiB"), ("socket_threads", "4"), ("net_chunk", "512KiB"), ("nvls_chunk", "512KiB"),
    ],
)  # fmt: skip
def test_a_word_of_the_collective_is_what_nccl_s_model_is_given(word, text):
    ready = prepare(f"nccl_all_reduce:{word}={text}", TWO)
    said = NcclOptions(**read_words({word: text}, str))
    network = load_network(TWO)
    expected = setting_of(network, place(network, 16), 16, said)
    assert ready.launch.setting == expected
    assert ready.launch.setting != prepare("nccl_all_reduce", TWO).launch.setting


def test_without_nvlink_sharp_nccl_takes_a_ring():
    assert prepare("nccl_all_reduce", "dgx-h100").at(2**28).parameters["algorithm"] == "nvls"
    assert prepare("nccl_all_reduce:nvls=none", "dgx-h100").at(2**28).parameters["algorithm"] == "ring"


def test_bounds_of_the_channels_count_in_the_schedule_and_in_the_time():
    def asked(more):
        return prepare(f"nccl_all_reduce:algorithm=ring,protocol=simple{more}", "dgx-h100")

    few, usual = asked(",max_ctas=2"), asked("")
    assert few.at(2**28).parameters["channels"] == 2
    assert few.predict(2**28).time > 2 * usual.predict(2**28).time
    assert asked(",min_ctas=32").at(2**28).parameters["channels"] == 32
    nvls = prepare("nccl_all_reduce:max_ctas=4,algorithm=nvls", "dgx-h100").at(2**28)
    assert nvls.parameters["channels"] == 4


def test_a_number_of_channels_alone_is_that_of_the_call():
    assert prepare("nccl_all_reduce:channels=6,algorithm=ring", "dgx-h100").at(2**28).parameters["channels"] == 6


def test_a_ring_s_chunk_is_half_of_the_buffer_and_one_of_ll_is_not():
    """Two slices of two steps are half of the eight steps that a buffer has."""
    for text, size in (("", 4), (",buffer=1MiB", 1), (",buffer=16MiB", 16)):
        ready = prepare(f"nccl_all_reduce:algorithm=ring,protocol=simple{text}", TWO)
        call = call_of(ready.launch.site, "all_reduce", Cell("ring", "simple", 0.0, 0.0), 2**33)
        assert chunk_bytes(call, 2**33 // call.n_channels) == size * 2**20 // 2
        parameters = ready.launch.parameters(2**28)
        built = NcclParameters("nccl_all_reduce", "all_reduce", 16, **parameters).call()
        assert dataclasses.replace(built, heads=0) == dataclasses.replace(call, size=2**28)
    few = prepare("nccl_all_reduce:protocol=ll,buffer=1MiB", TWO).predict(2**16).time
    assert few == prepare("nccl_all_reduce:protocol=ll", TWO).predict(2**16).time


def test_a_small_buffer_takes_more_hops():
    small, usual = (
        prepare(f"nccl_all_reduce:algorithm=ring,protocol=simple{text}", TWO).predict(2**28).time
        for text in (",buffer=256KiB", "")
    )
    assert small > 1.05 * usual


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nvls=8", "nvls= must be a number of channels and the rate of each, such as 12:30GB/s, got '8'"),
        ("nic=25", "nic= needs a unit"),
        ("net_type=NVL", "net_type= must be one of PIX, PXB, P2C, PXN, PHB, SYS, got 'NVL'"),
        ("gpu=cdna3", "gpu= must be one of volta, ampere, hopper, blackwell, got 'cdna3'"),
        ("collnet=maybe", "collnet= must be one of true, false, got 'maybe'"),
        ("buffer=5000B", "buffer= must be a multiple of 4096 B up to 1 GiB, got '5000B'"),
        (
            "nvlss=none",
            "has no parameter 'nvlss'; .*, graph, tuner, gpu, cpu, nvls, nic, net_type, net_latency, collnet, min",
        ),
        ("socket_threads=17", "socket_threads= must be 1..16, got '17'"),
        ("max_ctas=0", "max_ctas= must be 1..64, got '0'"),
        ("min_ctas=9,max_ctas=3", r"min_ctas= must be up to max_ctas= \(3\), got 9"),
        ("graph=g.xml,channels=4:20GB/s", "graph= and channels= both give the channels"),
    ],
)
def test_what_is_wrong_is_named_in_the_user_s_words(words, message):
    with pytest.raises(InputError, match=message):
        prepare(f"nccl_all_reduce:{words}", TWO)
