#!/bin/bash
# Tasks of an hpcfit campaign. By hand, in the folder of the campaign: sbatch scripts/NAME.sh
#SBATCH --job-name=campaign
#SBATCH --comment=by-hand
#SBATCH --time=01:00:00
#SBATCH --cpus-per-task=1
#SBATCH --ntasks=4
#SBATCH --array=0-7
#SBATCH --signal=USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=logs/%a.%A.out

trap : TERM USR1  # the ranks hear them too, and leave at the end of a chunk
cd -- "$SLURM_SUBMIT_DIR" || exit 1
export HPCFIT_CACHE="$PWD/kernels"  # nothing is compiled, the home folder is not touched
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1  # the ranks use the cores
export OMPI_MCA_mpi_yield_when_idle=1  # ranks that wait leave their core to others
export H5PY_ALWAYS_USE_MPI=1  # Debian's h5py is serial under srun without it
export HPCFIT_DEADLINE=$(($(date +%s) + 3300))  # leave by then

task=$SLURM_ARRAY_TASK_ID
srun --mpi=pmix --kill-on-bad-exit=1 --ntasks="$SLURM_NTASKS" python3 -m hpcfit task . "$task"
status=$?
if [ "$status" = 75 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 1000 ]; then
    # A job that was cancelled is not RUNNING any more; SLURM would bring it back to life.
    if [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)" = RUNNING ]; then
        scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
    fi
fi
exit "$status"
