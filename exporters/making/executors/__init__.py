"""Executors of builds: local processes, a Ray cluster, or Slurm."""
