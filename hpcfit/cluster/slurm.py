"""The commands of SLURM, each called once and with a limit of time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hpcfit.cluster.queue import (
    ACCOUNT_FORMAT,
    QUEUE_FORMAT,
    Account,
    Entry,
    parse_accounts,
    parse_queue,
)
from hpcfit.records import InputError, Mistake

SECONDS = 60.0  # that a controller has to answer
_USUAL_ARRAY = 1001  # SLURM's own default of MaxArraySize
_OF_SITE = ("SLURM_CONF", "SLURM_CLUSTERS", "SLURM_CONF_SERVER", "SLURM_EXIT_ERROR", "SLURM_DEBUG_FLAGS")
_OF_LAUNCHERS = ("SLURM_", "OMPI_COMM_", "OMPI_UNIVERSE", "PMIX_", "PMI_", "PRTE_")
_NEVER = ("ARRAY_INX", "DEPENDENCY", "EXPORT", "IGNORE_PBS", "NO_REQUEUE", "WAIT")
_UNLIKE_OPTION = {"time": "TIMELIMIT", "array": "ARRAY_INX"}


class Unreachable(InputError):
    """SLURM is here, but does not answer."""


def is_here() -> bool:
    """Whether this machine can submit jobs."""
    return shutil.which("sbatch") is not None


def needed() -> None:
    if not is_here():
        problem, remedy = "there is no sbatch here", "load the cluster's SLURM module, or give --local"
        raise InputError(Mistake("SLURM", problem, remedy))


def environment(options: Sequence[str] = ()) -> dict[str, str]:
    """What a job inherits: nothing of a job or of ranks that this may itself be a part of.

    Variables such as SBATCH_PARTITION would win over what a script says; they count where it says nothing.
    """
    names = {option.removeprefix("--").partition("=")[0] for option in options}
    told = {f"SBATCH_{_UNLIKE_OPTION.get(name, name.upper().replace('-', '_'))}" for name in names}
    told |= {f"SBATCH_{name}" for name in _NEVER}
    return {
        name: value
        for name, value in os.environ.items()
        if name in _OF_SITE or not (name in told or name.startswith(_OF_LAUNCHERS))
    }


def submit_held(folder: Path, script: str) -> str:
    """Submit a script that lies in a folder, to wait until it is released; the job's number."""
    text = (folder / script).read_text(encoding="utf-8")
    options = re.findall(r"^#SBATCH (--[a-z-]+)", text, flags=re.MULTILINE)
    done = _call(["sbatch", "--parsable", "--hold", script], cwd=folder, env=environment(options))
    if done.returncode:
        raise InputError(Mistake("sbatch", _words(done), "change the profile or the options"))
    return done.stdout.strip().splitlines()[-1].partition(";")[0]  # number;cluster


def release(jobs: Sequence[str]) -> None:
    _needed_call(["scontrol", "release", *jobs])


def cancel(jobs: Sequence[str]) -> None:
    """End jobs; those that have ended already are no mistake."""
    if not jobs:
        return
    done = _call(["scancel", *jobs])
    if done.returncode and "Invalid job id" not in done.stderr:
        raise Unreachable(Mistake("scancel", _words(done), "try again when SLURM answers"))


def queue() -> list[Entry]:
    """All jobs of this user that SLURM remembers, by one call of squeue."""
    user = str(os.getuid())
    command = ["squeue", "--noheader", "--states=all", f"--user={user}", f"--format={QUEUE_FORMAT}"]
    done = _call(command, env=os.environ | {"SLURM_BITSTR_LEN": "0"})  # lists of indices in full
    if done.returncode:
        raise Unreachable(Mistake("squeue", _words(done), "try again when SLURM answers"))
    return parse_queue(done.stdout)


def accounts(jobs: Sequence[str]) -> dict[tuple[str, int], Account]:
    """How tasks ended, where the site keeps accounts; else nothing."""
    if not jobs or not shutil.which("sacct"):
        return {}
    command = ["sacct", "-X", "-n", "-P", f"--jobs={','.join(jobs)}", f"--format={ACCOUNT_FORMAT}"]
    try:
        done = _call(command)
    except Unreachable:
        return {}
    return {} if done.returncode else parse_accounts(done.stdout)


def max_array_size() -> int:
    """SLURM's MaxArraySize: indices lie below it."""
    done = _call(["scontrol", "show", "config"])
    if done.returncode:
        raise Unreachable(Mistake("scontrol", _words(done), "try again when SLURM answers, or give --local"))
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", done.stdout, flags=re.MULTILINE)
    return int(found[1]) if found else _USUAL_ARRAY


def _needed_call(command: Sequence[str]) -> None:
    done = _call(command)
    if done.returncode:
        raise Unreachable(Mistake(command[0], _words(done), "try again when SLURM answers"))


def _call(
    command: Sequence[str], cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=cwd,
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError:
        remedy = "load the cluster's SLURM module, or give --local"
        raise Unreachable(Mistake(command[0], "is not here", remedy)) from None
    except subprocess.TimeoutExpired:
        problem = f"no answer in {SECONDS:.0f} s"
        raise Unreachable(Mistake(command[0], problem, "try again when SLURM answers")) from None


def _words(done: subprocess.CompletedProcess[str]) -> str:
    """What a command says about its failure, in its own words and on one line."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    told = [re.sub(r"^\w+: (error: |fatal: )?", "", line) for line in lines]
    return "; ".join(dict.fromkeys(told)) or f"exit status {done.returncode}"
