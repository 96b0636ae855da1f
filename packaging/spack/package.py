# ruff: noqa: F403, F405  (as Spack wants it)
"""Spack package: copy to packages/py-commsim/package.py of a Spack repository."""

from spack.package import *


class PyCommsim(PythonPackage):
    """Predict how long a collective takes on a datacenter network, then run the same schedule for real."""

    license("Apache-2.0")

    # The tree that was unpacked: spack dev-build py-commsim@0.3.0
    version("0.3.0")

    variant("mpi", default=False, description="Run schedules for real under MPI")
    variant("opt", default=True, description="Bisection bandwidth, integer programs and fits, with SciPy")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-setuptools@77:", type="build")
    depends_on("py-numpy@2.1:", type=("build", "run"))
    depends_on("py-numba@0.62:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-tomli-w@1.0:", type=("build", "run"))
    depends_on("py-mpi4py@4.0:", when="+mpi", type=("build", "run"))
    depends_on("py-scipy@1.14:", when="+opt", type=("build", "run"))
