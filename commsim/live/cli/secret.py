"""``--secret-file`` of the live switch, of its workers and of its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.cli.flags import Flags, flag
from commsim.core.errors import InputError
from commsim.core.files.opening import read_regular

if TYPE_CHECKING:
    from switch_model.live.authentication import Secrets

_MAX_BYTES = 1 << 16


class WithSecret(Flags):
    """Whether datagrams and lines of the control server have tags."""

    secret_file: str | None = flag(
        metavar="FILE",
        help="file with the secrets that switch and workers share, to tag each packet; each line is a "
        "secret for all jobs, or the name of a job and its secret",
    )

    def secrets(self) -> Secrets | None:
        """Return the secrets of the file, if there is one.

        Raises
        ------
        InputError
            If a line is none, or a secret is short.
        """
        return read_secrets(self.secret_file) if self.secret_file else None

    def secret_of(self, job: str) -> str:
        """Return the secret of a job; nothing where no file is given.

        Raises
        ------
        InputError
            If it has none.
        """
        secrets = self.secrets()
        return secrets.of(job) if secrets else ""


def read_secrets(path: str) -> Secrets:
    """Read a file of secrets.

    Raises
    ------
    InputError
        If a line is neither SECRET nor NAME SECRET, a name occurs twice, or a secret has less than 16 characters.
    """
    from switch_model.live.authentication import Secrets

    try:
        lines = read_regular(path, _MAX_BYTES).decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path}: secrets are printable ASCII characters") from None
    common, of_job = "", dict[str, str]()
    for number, line in enumerate(lines, 1):
        words = line.split()
        # The line itself is not shown: errors end up in logs.
        if len(words) > 2 or not line.isprintable() or (common if len(words) == 1 else words and words[0] in of_job):
            raise InputError(f"{path}, line {number}: expected SECRET, once, or NAME SECRET, once for each job")
        if len(words) == 2:
            of_job[words[0]] = words[1]
        elif words:
            common = words[0]
    try:
        return Secrets(common, of_job)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
