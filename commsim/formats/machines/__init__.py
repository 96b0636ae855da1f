"""Files of one machine: topologies of NCCL and RCCL, ``nvidia-smi topo -m`` and ``rocm-smi --showtopo``."""
