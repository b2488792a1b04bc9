"""Scripts handed to a real SLURM: held, recorded, released; all or none; nothing is run but what is meant."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcfit.cluster import slurm
from hpcfit.cluster.profiles import Profile
from hpcfit.cluster.scripts import Work
from hpcfit.cluster.submitting import cancel_interrupted, new_submission, scripts, submit
from hpcfit.records import InputError
from hpcfit.records.submissions import BEGUN, CANCELLED, RELEASED, Submission
from tests.minicluster import command, empty_queue, minicluster, wait_for

# Stands for `python -m hpcfit task . N` and `... merge .`; in its first turn task 1 leaves early.
WORKER = """#!/bin/bash
[ "$3" = merge ] && { ls done* > list; mv list merged; exit 0; }
echo "task $5 of $SLURM_JOB_NAME"
[ "$5" = 1 ] && [ ! -e again ] && { touch again; exit 75; }
touch "done$5"
"""
NASTY = ["a b", "it's", 'say "x"', "$(touch injected)", "`touch injected`", "a;touch injected\n#"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    with minicluster(2, 2, MINICLUSTER_ARRAY="11") as folder:
        yield folder


class Folder:
    """A campaign's folder with a worker, and what is recorded of it."""

    def __init__(self, path: Path) -> None:
        self.path, self.history = path, list[Submission]()
        (path / "logs").mkdir(parents=True)
        self.worker = path / "worker"
        self.worker.write_text(WORKER)
        self.worker.chmod(0o755)

    def submit(self, tasks: list[int], profile: Profile | None = None, name: str = "test") -> Submission:
        submission = new_submission(seconds=300)
        work = Work(name, str(self.worker), 300, submission.token)
        wanted = scripts(profile or Profile(), work, tasks, slurm.max_array_size())
        return submit(self.path, submission, wanted, self.history.append, one_by_one=False)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.path.iterdir())


@pytest.fixture
def folder(tmp_path: Path, cluster: Path) -> Iterator[Folder]:
    yield Folder(tmp_path / "campaign")
    slurm.cancel([entry.job for entry in slurm.queue() if entry.alive])


def test_arrays_run_and_the_merge_comes_last(folder: Folder) -> None:
    """Two arrays, as indices must be below 11; a task that leaves early is queued again before the merge."""
    done = folder.submit([0, 1, 9, 10, 12])
    assert [(array.offset, array.tasks) for array in done.arrays] == [(0, 3), (10, 2)]
    wait_for((folder.path / "merged").exists, 40, "the merge")
    assert (folder.path / "merged").read_text().split() == ["done0", "done1", "done10", "done12", "done9"]
    logs = {path.name.partition(".")[0]: path.read_text() for path in (folder.path / "logs").iterdir()}
    assert set(logs) == {"0", "1", "9", "10", "12", "merge"}
    assert logs["12"] == "task 12 of test\n"
    assert logs["1"].count("task 1 of test") == 2


def test_all_is_recorded_before_anything_runs(folder: Folder) -> None:
    done = folder.submit([0, 10])
    states = [(len(each.arrays), bool(each.merge), each.state) for each in folder.history]
    assert states == [
        (0, False, BEGUN),
        (1, False, BEGUN),
        (2, False, BEGUN),
        (2, True, BEGUN),
        (2, True, RELEASED),
    ]
    assert folder.history[-1] == done


def test_an_unknown_partition_is_told_in_the_words_of_sbatch(folder: Folder) -> None:
    with pytest.raises(InputError, match=r"sbatch: .*invalid partition specified: nowhere"):
        folder.submit([0], Profile(partition="nowhere"))
    assert empty_queue()
    assert folder.history[-1].state == CANCELLED


def test_if_one_of_several_is_refused_all_are_cancelled(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, count = slurm.submit_held, 0

    def third_fails(path: Path, script: str) -> str:
        nonlocal count
        count += 1
        if count == 3:
            raise InputError("sbatch: no")
        return really(path, script)

    monkeypatch.setattr(slurm, "submit_held", third_fails)
    with pytest.raises(InputError, match="sbatch: no"):
        folder.submit([0, 10])
    assert [each.state for each in folder.history][-1] == CANCELLED
    assert len(folder.history[-1].arrays) == 2
    wait_for(empty_queue, 20)
    assert not [name for name in folder.names() if name.startswith("done")]


def test_what_an_interrupted_submission_left_behind_is_cancelled(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after kill -9: jobs wait, held; the last was not recorded any more, its comment tells."""

    def killed(jobs: list[str]) -> None:
        raise SystemExit

    monkeypatch.setattr(slurm, "release", killed)
    monkeypatch.setattr(slurm, "cancel", lambda jobs: None)
    with pytest.raises(SystemExit):
        folder.submit([0, 1])
    monkeypatch.undo()
    assert not empty_queue()
    interrupted = [each for each in folder.history if each.state == BEGUN and len(each.arrays) == 1][:1]
    assert not interrupted[0].merge
    cancel_interrupted(interrupted, slurm.queue(), folder.history.append)
    wait_for(empty_queue, 20)
    assert folder.history[-1].state == CANCELLED


def test_names_do_not_inject_shell(tmp_path: Path, cluster: Path) -> None:
    """In the path of the folder, of the program, in the campaign's name and in shell-free profile values."""
    nasty = " ".join(NASTY)
    folder = Folder(tmp_path / nasty.replace("/", "_"))
    folder.submit([0], Profile(cpu=nasty.replace("\n", " "), modules=()), name=nasty)
    wait_for((folder.path / "merged").exists, 30, "the merge")
    assert folder.names() == sorted(["logs", "worker", "scripts", "done0", "merged"])
    assert len(list((folder.path / "logs").iterdir())) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder.path.name]


@pytest.mark.parametrize("nasty", [*(name for name in NASTY if "\n" not in name), "%j %a \\"])
def test_values_of_a_profile_reach_sbatch_as_they_are(nasty: str, folder: Folder) -> None:
    """sbatch itself reads the quoted line and says what it understood."""
    with pytest.raises(InputError) as raised:
        folder.submit([0], Profile(partition=nasty))
    assert f"invalid partition specified: {nasty}" in str(raised.value)
    assert not (folder.path / "injected").exists()
    assert empty_queue()


def test_variables_of_the_shell_do_not_override_the_script(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "nowhere")
    monkeypatch.setenv("SBATCH_ARRAY_INX", "0-5")
    monkeypatch.setenv("SBATCH_TIMELIMIT", "1")
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "99999999")
    folder.submit([0], Profile(partition="main"))
    wait_for((folder.path / "merged").exists, 30, "the merge")
    assert (folder.path / "merged").read_text().split() == ["done0"]


def test_several_ranks_meet_under_the_launcher(folder: Folder) -> None:
    """The script sets what srun and Open MPI need, and nothing else is there to do it."""
    folder.worker.write_text(
        f'#!/bin/bash\n[ "$3" = merge ] && {{ touch merged; exit 0; }}\nexec {ROOT}/.venv/bin/python -c "'
        "from mpi4py import MPI; import h5py; c = MPI.COMM_WORLD\n"
        "if c.allreduce(1) == 2 and c.rank == 0: print('met', h5py.get_config().mpi)\"\n"
    )
    folder.submit([0], Profile(ranks=2))
    wait_for((folder.path / "merged").exists, 40, "the merge")
    (log,) = [path for path in (folder.path / "logs").iterdir() if path.name.startswith("0.")]
    assert "met True" in log.read_text()


def test_one_rank_that_dies_ends_the_others(folder: Folder) -> None:
    folder.worker.write_text(
        '#!/bin/bash\n[ "$3" = merge ] && { touch merged; exit 0; }\n'
        '[ "$SLURM_PROCID" = 1 ] && kill -9 $$\nsleep 600\n'
    )
    folder.submit([0], Profile(ranks=2))
    wait_for((folder.path / "merged").exists, 40, "the merge")


def test_the_warning_reaches_the_ranks(folder: Folder) -> None:
    """scancel stands for the limit of time: USR1 goes to the ranks, the script asks for another turn."""
    folder.worker.write_text(
        '#!/bin/bash\n[ "$3" = merge ] && { touch merged; exit 0; }\n'
        '[ -e again ] && exit 0\ntrap "touch again; exit 75" USR1\ntouch ready\nsleep 60 & wait\n'
    )
    done = folder.submit([0])
    wait_for((folder.path / "ready").exists, 30, "the task")
    subprocess.run(["scancel", "--signal=USR1", f"{done.arrays[0].job}_0"], check=True)
    wait_for((folder.path / "merged").exists, 40, "the merge")
    assert (folder.path / "again").exists()


def test_a_task_that_is_cancelled_is_not_queued_again(folder: Folder) -> None:
    """Its ranks leave early, as they do at the end of their time; but nobody wants it any more."""
    folder.worker.write_text(
        '#!/bin/bash\n[ "$3" = merge ] && { touch merged; exit 0; }\n'
        'echo turn >> turns; trap "exit 75" TERM\ntouch ready\nsleep 60 & wait\n'
    )
    done = folder.submit([0])
    wait_for((folder.path / "ready").exists, 30, "the task")
    slurm.cancel(done.jobs)
    wait_for(empty_queue, 40, "the end")
    time.sleep(8)
    assert empty_queue()
    assert (folder.path / "turns").read_text() == "turn\n"


def test_a_cluster_that_is_away_is_told(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "SECONDS", 1.0)
    monkeypatch.setenv("SLURM_CONF", "/nonexistent/slurm.conf")
    with pytest.raises(slurm.Unreachable, match="squeue: no answer in 1 s; try again"):
        slurm.queue()


def test_stop_ends_all_daemons_and_start_brings_back_a_dead_one() -> None:
    with minicluster(2, 1) as folder:
        pid = int((folder / "run" / "slurmd-n2.pid").read_text())
        os.kill(pid, 9)
        wait_for(lambda: "slurmd-n2: dead" in command("status", folder), 5)
        command("start", folder)
        assert "dead" not in command("status", folder)
        pids = [int(path.read_text()) for path in (folder / "run").glob("*.pid")]
        assert len(pids) == 4
    for pid in pids:
        state = Path(f"/proc/{pid}/status")
        assert not state.exists() or "State:\tZ" in state.read_text()


ROOT = Path(__file__).parents[2]
