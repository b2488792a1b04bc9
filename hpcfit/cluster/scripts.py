"""The text of what SLURM runs; pure functions, so that --dry-run shows what would be submitted.

Scripts stand in the campaign's folder and are submitted from there: no path of the user's is in them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hpcfit.cluster.profiles import Profile
from hpcfit.cluster.times import time_text

LEAVE_EARLY = 75  # the exit status of a task that wants to be continued
MOST_RESTARTS = 1000
_PLAIN = re.compile(r"[\w.,:/=%@+\-\[\]^&|()*]+", re.ASCII)


@dataclass(frozen=True)
class Array:
    """Tasks that are submitted together: task = offset + index, and indices have few enough digits."""

    offset: int
    digits: int  # of an index; 0: as many as it has
    indices: tuple[int, ...]

    @property
    def tasks(self) -> tuple[int, ...]:
        return tuple(self.offset + index for index in self.indices)


def arrays_of(tasks: Iterable[int], max_array_size: int) -> list[Array]:
    """Tasks in arrays whose indices lie below SLURM's MaxArraySize.

    Arrays hold a power of ten of tasks, so that SLURM can write a task's number into the name of its log.
    """
    digits = len(str(max_array_size)) - 1
    size = 10**digits
    groups: dict[int, list[int]] = {}
    for task in sorted(tasks):
        groups.setdefault(task // size, []).append(task % size)
    return [Array(group * size, digits if group else 0, tuple(indices)) for group, indices in groups.items()]


def ranges(indices: Sequence[int]) -> str:
    """Ascending whole numbers as in 0-5,7,9-12."""
    found: list[list[int]] = []
    for index in indices:
        if found and index == found[-1][1] + 1:
            found[-1][1] = index
        else:
            found.append([index, index])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in found)


@dataclass(frozen=True)
class Work:
    """What the scripts of a campaign have in common."""

    name: str  # of the campaign
    python: str  # that has hpcfit
    seconds: int  # limit of a task
    token: str  # by which a submission knows its jobs again


def array_script(profile: Profile, work: Work, array: Array, after: Sequence[str] = ()) -> str:
    """The script of an array: each of its jobs works on one task."""
    throttle = f"%{profile.max_running}" if profile.max_running else ""
    lead = lead_of(work.seconds)
    number = f"{array.offset // 10**array.digits}%{array.digits}a" if array.offset else "%a"
    directives = [
        *_directives(profile, work, work.name, work.seconds),
        f"--ntasks={profile.ranks}",
        f"--array={ranges(array.indices)}{throttle}",
        f"--signal=USR1@{lead}",
        "--requeue",
        "--open-mode=append",
        f"--output=logs/{number}.%A.out",
        *([f"--dependency=afterany:{':'.join(after)}"] if after else []),
    ]
    task = "$SLURM_ARRAY_TASK_ID" if not array.offset else f"$((SLURM_ARRAY_TASK_ID + {array.offset}))"
    lines = [
        "#!/bin/bash",
        "# Tasks of an hpcfit campaign. By hand, in the folder of the campaign: sbatch scripts/NAME.sh",
        *_headed(directives),
        "",
        "trap : TERM USR1  # the ranks hear them too, and leave at the end of a chunk",
        *_environment(profile),
        f"export HPCFIT_DEADLINE=$(($(date +%s) + {work.seconds - lead}))  # leave by then",
        "",
        f"task={task}",
        f'{_launch(profile)} {shlex.quote(work.python)} -m hpcfit task . "$task"',
        "status=$?",
        f'if [ "$status" = {LEAVE_EARLY} ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {MOST_RESTARTS} ]; then',
        "    # A job that was cancelled is not RUNNING any more; SLURM would bring it back to life.",
        '    if [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)" = RUNNING ]; then',
        '        scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"',
        "    fi",
        "fi",
        'exit "$status"',
    ]
    return "\n".join(lines) + "\n"


def merge_script(profile: Profile, work: Work, after: Sequence[str]) -> str:
    """The script of the job that joins the tasks, when all have ended in whatever way."""
    directives = [
        *_directives(profile, work, f"{work.name}-merge", work.seconds),
        "--ntasks=1",
        "--requeue",
        "--open-mode=append",
        "--output=logs/merge.%j.out",
        *([f"--dependency=afterany:{':'.join(after)}"] if after else []),
    ]
    lines = [
        "#!/bin/bash",
        "# Joins the tasks of an hpcfit campaign, if all are there; else it says which are missing.",
        *_headed(directives),
        "",
        *_environment(profile),
        "",
        f"exec {shlex.quote(work.python)} -m hpcfit merge .",
    ]
    return "\n".join(lines) + "\n"


def lead_of(seconds: int) -> int:
    """How long before the limit a task is told to leave; SLURM tells it up to a minute early."""
    return min(300, max(seconds // 5, 20))


def job_name(name: str) -> str:
    """A campaign's name as other people's scripts can read it in squeue."""
    return re.sub(r"[^\w.+-]+", "_", name, flags=re.ASCII).strip("_")[:60] or "campaign"


def _directives(profile: Profile, work: Work, name: str, seconds: int) -> list[str]:
    """Options that all jobs of a campaign have."""
    given = {
        "partition": profile.partition,
        "account": profile.account,
        "qos": profile.qos,
        "mem-per-cpu": profile.memory,
    }
    return [
        f"--job-name={job_name(name)}",
        f"--comment={work.token}",
        *(f"--{option}={value}" for option, value in given.items() if value),
        *profile.options,
        f"--time={time_text(seconds)}",
        "--cpus-per-task=1",
    ]


def _headed(options: Iterable[str]) -> list[str]:
    return [f"#SBATCH {directive(option)}" for option in options]


def directive(option: str) -> str:
    """An option as sbatch reads it from a script: it knows quotes and backslashes, as a shell does."""
    if not option.isprintable():
        raise ValueError(f"{option!r} does not fit on one line")
    name, equals, value = option.partition("=")
    if not value or _PLAIN.fullmatch(value):
        return option
    escaped = re.sub(r'(["\\])', r"\\\1", value)
    return f'{name}{equals}"{escaped}"'


def _environment(profile: Profile) -> list[str]:
    """Modules and the user's own lines first, then what hpcfit needs whatever they say."""
    target = [f"export HPCFIT_CPU={shlex.quote(profile.cpu)}"] if profile.cpu else []
    return [
        *(f"module load {shlex.quote(module)}" for module in profile.modules),
        *profile.setup,
        'cd -- "$SLURM_SUBMIT_DIR" || exit 1',
        'export HPCFIT_CACHE="$PWD/kernels"  # nothing is compiled, the home folder is not touched',
        *target,
        "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1  # the ranks use the cores",
        "export OMPI_MCA_mpi_yield_when_idle=1  # ranks that wait leave their core to others",
        "export H5PY_ALWAYS_USE_MPI=1  # Debian's h5py is serial under srun without it",
    ]


def _launch(profile: Profile) -> str:
    """The launcher with the number of ranks; srun ends all of them when one dies."""
    launcher = profile.launcher.strip()
    program = launcher.split()[0] if launcher else ""
    if program.rpartition("/")[2] == "srun":
        kill = "" if "--kill-on-bad-exit" in launcher else " --kill-on-bad-exit=1"
        return f'{launcher}{kill} --ntasks="$SLURM_NTASKS"'
    return f'{launcher} -n "$SLURM_NTASKS"' if launcher else ""
