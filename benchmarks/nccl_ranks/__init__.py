"""Real NCCL with several ranks on one GPU: what it chooses, and how long its collectives take over shaped sockets.

NCCL refuses two ranks of one machine on one GPU. A rank that says it is another machine (``NCCL_HOSTID``) is accepted,
and reaches the others by sockets. With NVIDIA's multi-process service the kernels of all ranks run at once.
"""
