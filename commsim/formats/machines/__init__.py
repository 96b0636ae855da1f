"""Files that describe one machine: NCCL's and RCCL's topology, and the matrix of ``nvidia-smi topo -m``."""
