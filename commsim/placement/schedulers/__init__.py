"""Files of schedulers: Slurm, Kubernetes (Volcano, Kueue) and topograph."""
