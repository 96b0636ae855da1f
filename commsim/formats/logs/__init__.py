"""Logs of programs: which there are, their lines, the columns of nccl-tests, the operation of one that names none."""
