import pytest

from commsim.core.errors import InputError
from commsim.jobs.composition import read_composition


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[jobs]]\ncollective = "x"\n', r"line 1: jobs is not .*; did you mean \[\[job\]\]?"),
        ('[[backgrounds]]\nkind = "x"\n', r"did you mean \[\[background\]\]?"),
    ],
)
def test_the_name_of_a_table_in_the_other_number_leads_to_the_right_one(text, message, tmp_path):
    """`[[jobs]]` was refused with "known: schema" only, since nothing had read a job."""
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_composition(tmp_path / "x.toml")
