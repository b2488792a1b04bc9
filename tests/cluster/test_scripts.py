"""The text of scripts, and what a shell and sbatch make of it."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from hpcfit.cluster.profiles import Profile
from hpcfit.cluster.scripts import (
    Array,
    Work,
    array_script,
    arrays_of,
    directive,
    job_name,
    lead_of,
    merge_script,
    ranges,
)

WORK = Work("s18", "/opt/hpcfit/bin/python", 3600, "hpcfit-0123")
NASTY = ["a b", "it's", 'say "x"', "$(touch injected)", "`touch injected`", "a;touch injected", "x\\", "#no"]


def directives(text: str) -> list[str]:
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH ")]


def test_an_array_asks_for_what_the_profile_says() -> None:
    profile = Profile(
        partition="main",
        account="chaos",
        qos="high",
        memory="2G",
        ranks=16,
        max_running=4,
        options=("--constraint=rome",),
    )
    found = directives(array_script(profile, WORK, Array(0, 3, (0, 1, 2, 7))))
    for option in (
        *("--job-name=s18", "--partition=main", "--account=chaos", "--qos=high", "--mem-per-cpu=2G"),
        *("--ntasks=16", "--array=0-2,7%4", "--time=01:00:00", "--constraint=rome", "--requeue"),
        *("--signal=USR1@300", "--output=logs/%a.%A.out", "--open-mode=append", "--comment=hpcfit-0123"),
    ):
        assert option in found, option


def test_a_plain_profile_asks_for_nothing_more_than_it_needs() -> None:
    text = array_script(Profile(), WORK, Array(0, 3, (0,)))
    for option in ("--partition", "--account", "--qos", "--mem", "--dependency", "%4"):
        assert option not in text


def test_the_ranks_end_together_and_what_srun_needs_is_set() -> None:
    text = array_script(Profile(ranks=2), WORK, Array(0, 3, (0,)))
    assert "srun --mpi=pmix --kill-on-bad-exit=1 --ntasks" in text
    for variable in ("H5PY_ALWAYS_USE_MPI=1", "OMP_NUM_THREADS=1", "OMPI_MCA_mpi_yield_when_idle=1"):
        assert f"export {variable}" in text or f" {variable}" in text
    assert 'export HPCFIT_CACHE="$PWD/kernels"' in text


@pytest.mark.parametrize(
    ("launcher", "line"),
    [
        ("mpirun", 'mpirun -n "$SLURM_NTASKS" /opt/hpcfit/bin/python'),
        ("srun --mpi=pmi2 --kill-on-bad-exit", 'srun --mpi=pmi2 --kill-on-bad-exit --ntasks="$SLURM_NTASKS"'),
        ("/site/bin/srun", "/site/bin/srun --kill-on-bad-exit=1 --ntasks"),
    ],
)
def test_other_launchers(launcher: str, line: str) -> None:
    assert line in array_script(Profile(launcher=launcher), WORK, Array(0, 3, (0,)))


def test_modules_and_setup_come_before_what_hpcfit_sets() -> None:
    profile = Profile(modules=("python/3.11", "a b"), setup=("export OMP_NUM_THREADS=8", "cd /elsewhere"))
    lines = array_script(profile, WORK, Array(0, 3, (0,))).splitlines()
    order = [
        "module load python/3.11",
        "module load 'a b'",
        "export OMP_NUM_THREADS=8",
        "cd /elsewhere",
        'cd -- "$SLURM_SUBMIT_DIR" || exit 1',
    ]
    places = [lines.index(line) for line in order]
    assert places == sorted(places)
    assert places[-1] < next(k for k, line in enumerate(lines) if line.startswith("export HPCFIT_CACHE"))


def test_the_merge_waits_for_all_arrays_in_whatever_way_they_end() -> None:
    found = directives(merge_script(Profile(ranks=16), WORK, ["11", "12"]))
    assert "--dependency=afterany:11:12" in found
    assert "--ntasks=1" in found
    assert "--job-name=s18-merge" in found


@pytest.mark.parametrize(
    "script", [array_script(Profile(), WORK, Array(2000, 3, (5, 6))), merge_script(Profile(), WORK, ["1"])]
)
def test_bash_takes_the_scripts(script: str) -> None:
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


@pytest.mark.parametrize("nasty", NASTY)
def test_names_do_not_inject_shell(nasty: str, tmp_path: Path) -> None:
    """The script is really run, with programs that only tell what they were given."""
    profile = Profile(partition=nasty, account=nasty, qos=nasty, modules=(nasty,), cpu=nasty)
    work = Work(nasty, f"/opt/{nasty}/python", 3600, "hpcfit-0")
    text = array_script(profile, work, Array(0, 3, (0,)))
    told = "".join(f'{name}() {{ printf "%s\\n" "$@" >> told; }}\n' for name in ("module", "srun"))
    environment = os.environ | {
        "SLURM_ARRAY_TASK_ID": "0",
        "SLURM_SUBMIT_DIR": str(tmp_path),
        "SLURM_NTASKS": "1",
    }
    subprocess.run(["bash"], input=told + text, text=True, cwd=tmp_path, env=environment, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["told"]
    lines = (tmp_path / "told").read_text().splitlines()
    assert lines[:2] == ["load", nasty]
    assert f"/opt/{nasty}/python" in lines
    for line in directives(text):
        if line.startswith("--partition"):
            assert "".join(shlex.split(line, comments=False)) == f"--partition={nasty}"


def test_what_does_not_fit_on_a_line_is_no_directive() -> None:
    with pytest.raises(ValueError, match="one line"):
        directive("--partition=a\n#SBATCH --wrap=id")


def test_a_task_that_left_early_is_queued_again(tmp_path: Path) -> None:
    text = array_script(Profile(), WORK, Array(1000, 3, (5,)))
    told = 'srun() { echo "task ${!#}" >> told; return "$ENDS"; }\nscontrol() { echo "$@" >> told; }\n'
    told += 'squeue() { echo "$STATE"; }\n'
    environment = os.environ | {
        "SLURM_JOB_ID": "80",
        "SLURM_ARRAY_JOB_ID": "77",
        "SLURM_ARRAY_TASK_ID": "5",
        "SLURM_SUBMIT_DIR": str(tmp_path),
        "SLURM_NTASKS": "1",
    }
    for ends, state, expected in (
        ("75", "RUNNING", ["task 1005", "requeue 77_5"]),
        ("75", "COMPLETING", ["task 1005"]),  # as of a job that was cancelled
        ("0", "RUNNING", ["task 1005"]),
        ("2", "RUNNING", ["task 1005"]),
    ):
        (tmp_path / "told").unlink(missing_ok=True)
        done = subprocess.run(
            ["bash"],
            input=told + text,
            text=True,
            cwd=tmp_path,
            env=environment | {"ENDS": ends, "STATE": state},
        )
        assert done.returncode == int(ends)
        assert (tmp_path / "told").read_text().splitlines() == expected


@pytest.mark.parametrize(
    ("tasks", "largest", "expected"),
    [
        (range(3), 1001, [(0, "0-2")]),
        (range(1000), 1001, [(0, "0-999")]),
        (range(998, 1002), 1001, [(0, "998-999"), (1000, "0-1")]),
        ((5, 17, 18), 11, [(0, "5"), (10, "7-8")]),
        ((0, 12345), 10001, [(0, "0"), (10000, "2345")]),
        ((), 1001, []),
    ],
)
def test_arrays_stay_below_the_largest_index(
    tasks: range, largest: int, expected: list[tuple[int, str]]
) -> None:
    arrays = arrays_of(tasks, largest)
    assert [(array.offset, ranges(array.indices)) for array in arrays] == expected
    assert [task for array in arrays for task in array.tasks] == list(tasks)
    assert all(index < largest for array in arrays for index in array.indices)


def test_the_logs_have_the_numbers_of_tasks() -> None:
    for array in arrays_of((5, 17, 2345), 101):
        text = array_script(Profile(), WORK, array)
        (name,) = [line for line in directives(text) if line.startswith("--output")]
        index = array.indices[0]
        name = name.replace("%a", str(index)).replace("%2a", f"{index:02}")
        assert name == f"--output=logs/{array.tasks[0]}.%A.out"


def test_names_of_jobs_are_plain_words() -> None:
    assert job_name("my fit; $(x)") == "my_fit_x"
    assert job_name("...") == "..."
    assert job_name(";;") == "campaign"


def test_the_warning_comes_early_enough_and_not_at_once() -> None:
    assert [lead_of(seconds) for seconds in (120, 600, 3600, 86400)] == [24, 120, 300, 300]
