"""Numbers on the command line: digits 0 to 9, as in every file and specification."""

import pytest

from commsim.cli import main
from commsim.core.spec import is_whole


@pytest.mark.parametrize("digits", ["\uff12", "٢", "२", "²", "1_0"])
def test_digits_of_other_scripts_are_no_number(digits, capsys):
    """``int`` takes them: a version, a count and a flag are refused in one line, wherever they are read."""
    assert not is_whole(digits)
    for line in (
        f"nccl --topology dgx-h100 --nccl-version {digits}.23", f"nccl --topology dgx-h100 --channels {digits}:20GB/s",
        f"nccl --topology dgx-h100 --max-ctas {digits}", f"run --topology star:n_hosts={digits}",
        f"run --topology star:n_hosts=4 --seed {digits}", f"run --topology star:n_hosts=4 -n {digits}",
        f"run --topology star:n_hosts=4 --hashes {digits}", f"expect dgx-h100 --machines {digits}",
        f"run --topology star:n_hosts=4 --group 0,{digits}", f"switch simulate --workers {digits}",
        f"run --topology star:n_hosts=4 --engine auto --tolerance {digits}", f"expect dgx-h100 --false-alarms {digits}",
        f"run --topology star:n_hosts=4 --engine packet --class-weights {digits}", f"run --buffer-alpha {digits}",
    ):  # fmt: skip
        try:
            code = main(line.split())
        except SystemExit as refused:
            code = refused.code
        assert code == 2, line
        told = capsys.readouterr().err
        assert digits in told, told
        assert "Traceback" not in told
