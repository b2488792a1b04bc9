#!/bin/bash
# Joins the tasks of an hpcfit campaign, if all are there; else it says which are missing.
#SBATCH --job-name=campaign-merge
#SBATCH --comment=by-hand
#SBATCH --time=01:00:00
#SBATCH --cpus-per-task=1
#SBATCH --ntasks=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=logs/merge.%j.out

cd -- "$SLURM_SUBMIT_DIR" || exit 1
export HPCFIT_CACHE="$PWD/kernels"  # nothing is compiled, the home folder is not touched
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1  # the ranks use the cores
export OMPI_MCA_mpi_yield_when_idle=1  # ranks that wait leave their core to others
export H5PY_ALWAYS_USE_MPI=1  # Debian's h5py is serial under srun without it

exec python3 -m hpcfit merge .
