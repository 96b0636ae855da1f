"""Logs of programs: their lines, the columns of nccl-tests' tables, and the operation of one that names none."""
