import re

import pytest

OSU = "# OSU MPI {} Test v7.4\n# Size          {}\n"


def osu(path, title, column, values):
    path.write_text(OSU.format(title, column) + "".join(f"{size}   {value:.4f}\n" for size, value in values.items()))
    return path


SIZES = [2**k for k in range(8, 27, 2)]


def test_a_fit_of_collectives_prints_a_network_that_gives_the_times_again(commsim, tmp_path):
    star = "star:n_hosts=8,bandwidth=25GB/s,latency=2us"
    times = {}
    for row in commsim.results("run", "--overhead", "0us", "--topology", star, "-b", "1K", "-e", "256M", "-f", "8")[
        "results"
    ]:
        times[int(row["size_B"])] = row["time_s"] * 1e6
    path = osu(tmp_path / "osu.txt", "Allreduce Latency", "Avg Latency(us)", times)
    tree = commsim.results("fit", path, "--ranks", "8", "--collective", "ring_all_reduce", "--line-rate", "25GB/s")
    assert tree["network"]["alpha_s"] == pytest.approx(4e-6, rel=0.01)
    assert tree["network"]["bandwidth_Bps"] == pytest.approx(25e9, rel=0.01)
    assert tree["results"][0]["efficiency"] == pytest.approx(1.0, rel=0.01)
    command = re.search(r"^commsim run (.*) --topology '(.*)'$", commsim.out, re.MULTILINE)
    again = commsim.results(
        "run", "--overhead", "0us", *command[1].split(), "--topology", command[2], "-b", "1M", "-e", "1M"
    )
    direct = commsim.results("run", "--overhead", "0us", "--topology", star, "-b", "1M", "-e", "1M")
    assert again["results"][0]["time_s"] == pytest.approx(direct["results"][0]["time_s"], rel=0.01)


def test_point_to_point_tables_give_loggp(commsim, tmp_path):
    latency = {size: 1.5 + size / 12.5e3 for size in SIZES}
    path = osu(tmp_path / "latency.txt", "Latency", "Latency (us)", latency)
    with path.open("a") as file:
        file.write(OSU.format("Bandwidth", "Bandwidth (MB/s)"))
        file.writelines(f"{size}   {size / (0.5 + size / 12.5e3):.4f}\n" for size in SIZES)
    found = commsim.results("fit", path)["loggp"]
    assert found["L_plus_o"]["value"] == pytest.approx(1.5e-6, rel=0.01)
    assert found["max_g_o"]["value"] == pytest.approx(0.5e-6, rel=0.01)
    assert found["G"]["value"] == pytest.approx(0.08e-9, rel=0.01)
    assert "L and o come as a sum" in commsim.out
    assert "--overhead" in commsim.out


def test_what_cannot_be_fitted_is_refused(commsim, tmp_path):
    one = osu(tmp_path / "one.txt", "Allreduce Latency", "Avg Latency(us)", {8: 2.0})
    assert "a fit needs at least 2 sizes" in commsim.refuses("fit", one)
    two = osu(tmp_path / "two.txt", "Allreduce Latency", "Avg Latency(us)", {8: 2.0, 2**20: 99.0})
    assert "needs a closed form and at least 2 ranks" in commsim.refuses("fit", two, "--collective", "ring_all_reduce")
    assert "0 of the fits are for its operation" in commsim.refuses("fit", two, "--collective", "ring_all_gather")
