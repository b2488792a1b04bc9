"""Machines and batch systems: what is here, and (with campaigns) the only room that knows SLURM."""
