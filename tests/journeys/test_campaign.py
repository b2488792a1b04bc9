"""A campaign on a real SLURM of two virtual nodes, and the same campaign on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.test_campaign_input import DECAY
from tests.journeys.campaign_material import S18, assert_same_numbers, hpcfit, numbers, start
from tests.minicluster import command as command_of_cluster
from tests.minicluster import empty_queue, minicluster, wait_for


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    with minicluster(2, 2, MINICLUSTER_DEAD="10") as folder:
        yield folder


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the job, and with the campaign as one rank of this machine computes it."""
    folder = tmp_path_factory.mktemp("campaigns")
    (folder / "s18.toml").write_text(S18)
    done = hpcfit("submit", "s18.toml", "-d", "alone", "--local", "--ranks", 1, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def status(folder: Path) -> dict[str, Any]:
    done = hpcfit("status", folder.name, "--json", cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_an_array_of_tasks_gives_the_numbers_of_one_rank(here: Path, cluster: Path) -> None:
    """2,000 fits as 8 tasks of 2 ranks each on 2 nodes; the merge follows by dependency."""
    done = hpcfit("submit", "s18.toml", "-d", "array", "--tasks", 8, "--ranks", 2, "--time", "10", cwd=here)
    assert done.returncode == 0, done.stderr
    for line in ("members     2,000", "tasks       8 of about", "core-hours", "bytes"):
        assert line in done.stderr
    result = here / "array" / "result.h5"
    wait_for(lambda: result.exists() and empty_queue(), 110, "the campaign")
    assert_same_numbers(result, here / "alone" / "result.h5")
    np.testing.assert_array_equal(numbers(result)["members"], np.arange(1, 2001))
    found = status(here / "array")
    assert (found["done"], found["missing"], found["merged"], found["failed"]) == (2000, 0, True, {})
    report = hpcfit("report", "array", "-o", "page.html", cwd=here)
    assert report.returncode == 0, report.stderr
    assert "2,000" in (here / "page.html").read_text()


def decay(folder: Path, members: int = 300) -> Path:
    """A quick campaign's job."""
    path = folder / "decay.toml"
    path.write_text(DECAY.replace("members = 20", f"members = {members}"))
    return path


def test_more_members_are_added_to_what_is_there(tmp_path: Path) -> None:
    """1,000 members extended to 2,000 compute 1,000; the result is that of 2,000 at once."""
    decay(tmp_path, 2000)
    command = ["submit", "decay.toml", "--local", "--tasks", 3]
    few = hpcfit(*command, "-d", "grown", "--set", "ensemble.members=1000", cwd=tmp_path)
    assert few.returncode == 0, few.stderr
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "grown" / "tasks").glob("*.h5")}
    more = hpcfit(*command, "-d", "grown", cwd=tmp_path)
    assert more.returncode == 0, more.stderr
    assert "2,000, 1,000 of them new" in more.stderr
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "grown" / "tasks").glob("*.h5")}
    assert after.items() >= before.items()
    assert len(after) == 6
    assert hpcfit(*command, "-d", "whole", cwd=tmp_path).returncode == 0
    assert_same_numbers(tmp_path / "grown" / "result.h5", tmp_path / "whole" / "result.h5")


@pytest.mark.parametrize("how", ["Ctrl-C", "cancel"])
def test_tasks_here_leave_after_a_chunk_and_resume_goes_on(how: str, tmp_path: Path) -> None:
    """They end with their parent, ranks under mpirun too; nothing that was kept is computed again."""
    ranks = ("--ranks", 2) if how == "cancel" else ()
    decay(tmp_path, 320_000)  # that none of the commands below comes too late
    run = start("submit", "decay.toml", "-d", "camp", "--local", "--chunk", 8000, *ranks, cwd=tmp_path)
    parts = tmp_path / "camp" / "parts"
    wait_for(lambda: parts.is_dir() and any(parts.glob("*.h5")), 60, "a part")
    assert run.poll() is None
    looked = hpcfit("status", "camp", "--json", cwd=tmp_path)
    states = {task["state"] for task in json.loads(looked.stdout)["tasks"]}
    assert "running" in states
    assert "another hpcfit is at work here" in hpcfit("resume", "camp", cwd=tmp_path).stderr
    if how == "cancel":
        assert hpcfit("cancel", "camp", cwd=tmp_path).returncode == 0
    else:
        run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 75, said
    assert "left early with" in said
    kept = sorted(path.name for path in (tmp_path / "camp").glob("*/*.h5"))
    assert kept
    again = hpcfit("resume", "camp", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    np.testing.assert_array_equal(numbers(tmp_path / "camp" / "result.h5")["members"], np.arange(1, 320_001))
    assert not list(parts.iterdir())


def test_tasks_that_were_killed_are_missing_until_resumed(tmp_path: Path, cluster: Path) -> None:
    """Killed jobs are told with their logs; resume submits these alone, and the merge behind them."""
    decay(tmp_path, 120_000)
    options = ("--partition", "main", "--tasks", 4, "--max-running", 1)
    done = hpcfit("submit", "decay.toml", "-d", "camp", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    camp = tmp_path / "camp"
    (submission,) = json.loads((camp / "submissions.json").read_text())["submissions"]
    job = submission["arrays"][0]["job"]
    wait_for(lambda: (camp / "tasks" / "0.h5").exists(), 60, "the first task")
    subprocess.run(["scancel", job], check=True)
    wait_for(empty_queue, 30, "the end of all jobs")  # the merge has run, too, and found tasks missing
    assert not (camp / "result.h5").exists()
    found = status(camp)
    assert found["missing"]
    assert "are missing, of task" in "".join(path.read_text() for path in (camp / "logs").glob("merge.*.out"))
    again = hpcfit("resume", "camp", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    second = hpcfit("resume", "camp", cwd=tmp_path)
    assert "nothing to submit" in second.stderr
    wait_for((camp / "result.h5").exists, 90, "the result")
    np.testing.assert_array_equal(numbers(camp / "result.h5")["members"], np.arange(1, 120_001))
    script = (camp / "scripts" / f"tasks-{min(open_tasks(found))}.sh").read_text()
    assert f"--array={min(open_tasks(found))}-3%1" in script


def open_tasks(found: dict[str, Any]) -> list[int]:
    return [task["task"] for task in found["tasks"] if task["state"] != "done"]


def test_cancel_ends_the_recorded_jobs_and_no_others(tmp_path: Path, cluster: Path) -> None:
    decay(tmp_path)
    other = subprocess.run(
        ["sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap=true"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    (tmp_path / "clusters.toml").write_text('[slow]\npartition = "main"\nsetup = ["sleep 300"]\n')
    done = hpcfit(
        "submit",
        "decay.toml",
        "-d",
        "camp",
        "--cluster",
        "slow",
        cwd=tmp_path,
        HPCFIT_CLUSTERS="clusters.toml",
    )
    assert done.returncode == 0, done.stderr
    ended = hpcfit("cancel", "camp", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    wait_for(lambda: alive() == {other}, 30, "the end of its jobs")
    subprocess.run(["scancel", other], check=True)
    assert hpcfit("status", "camp", cwd=tmp_path).stdout.count("hpcfit resume camp") == 1


def test_a_controller_that_is_away_is_no_reason_to_submit_twice(tmp_path: Path, cluster: Path) -> None:
    decay(tmp_path)
    (tmp_path / "clusters.toml").write_text('[slow]\npartition = "main"\nsetup = ["sleep 300"]\n')
    told = {"HPCFIT_CLUSTERS": str(tmp_path / "clusters.toml")}
    done = hpcfit("submit", "decay.toml", "-d", "camp", "--cluster", "slow", cwd=tmp_path, **told)
    assert done.returncode == 0, done.stderr
    record = (tmp_path / "camp" / "submissions.json").read_bytes()
    pid = int((cluster / "run" / "slurmctld.pid").read_text())
    os.kill(pid, signal.SIGTERM)  # killed, it would forget what it did in the last seconds
    try:
        refused = hpcfit("resume", "camp", cwd=tmp_path, **told)
        assert refused.returncode == 2, refused.stderr
        assert "try again when SLURM answers" in refused.stderr
        looked = hpcfit("status", "camp", cwd=tmp_path)
        assert looked.returncode == 0
        assert "SLURM does not answer" in looked.stdout
    finally:
        command_of_cluster("start", cluster)
    assert (tmp_path / "camp" / "submissions.json").read_bytes() == record
    assert hpcfit("cancel", "camp", cwd=tmp_path).returncode == 0
    wait_for(empty_queue, 30)


def test_two_resumes_at_once_submit_every_task_once(tmp_path: Path, cluster: Path) -> None:
    decay(tmp_path)
    (tmp_path / "clusters.toml").write_text('[slow]\npartition = "main"\nsetup = ["sleep 300"]\n')
    told = {"HPCFIT_CLUSTERS": str(tmp_path / "clusters.toml")}
    done = hpcfit(
        "submit", "decay.toml", "-d", "camp", "--cluster", "slow", "--tasks", 3, cwd=tmp_path, **told
    )
    assert done.returncode == 0, done.stderr
    assert hpcfit("cancel", "camp", cwd=tmp_path).returncode == 0
    wait_for(empty_queue, 30)
    runs = [start("resume", "camp", cwd=tmp_path, **told) for _ in range(4)]
    said = [run.communicate(timeout=60)[1] for run in runs]
    statuses = [run.returncode for run in runs]
    assert set(statuses) <= {0, 2}, said
    assert sum("submitted: 3 tasks" in each for each in said) == 1, said
    for status_, each in zip(statuses, said, strict=True):
        assert status_ == 0 or "another hpcfit is at work here" in each
    assert len(alive()) == 2  # an array and its merge
    assert hpcfit("cancel", "camp", cwd=tmp_path).returncode == 0
    wait_for(empty_queue, 30)


def test_names_inject_nothing_from_the_job_to_the_page(tmp_path: Path, cluster: Path) -> None:
    """A job file, a folder and a label of a cell with names that a shell or a browser would obey."""
    nasty = "a 'b' \"c\" $(touch injected) `touch injected` <script>x</script>;\n&"
    job = DECAY.replace("members = 20", 'members = 5\ngrid = {"guess.k" = [0.4, "0.2*3"]}')
    (tmp_path / f"{nasty.replace('/', '_')}.toml").write_text(job)
    (tmp_path / "clusters.toml").write_text(
        "[nasty]\npartition = 'main'\ncpu = 'native'\noptions = ['--nodelist=n1']\n"
    )
    (file,) = tmp_path.glob("*script*.toml")
    done = hpcfit(
        *("submit", file.name, "-d", f"camp {file.stem}", "--cluster", "nasty", "--tasks", 1),
        cwd=tmp_path,
        HPCFIT_CLUSTERS=str(tmp_path / "clusters.toml"),
    )
    assert done.returncode == 0, done.stderr
    folder = tmp_path / f"camp {file.stem}"
    wait_for(lambda: (folder / "result.h5").exists() and empty_queue(), 60, "the result")
    report = hpcfit("report", folder.name, "-o", "page.html", cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    assert "<script>x" not in (tmp_path / "page.html").read_text()
    assert not list(tmp_path.rglob("injected*"))


def test_held_jobs_are_released_by_resume(tmp_path: Path, cluster: Path) -> None:
    decay(tmp_path)
    (tmp_path / "clusters.toml").write_text('[slow]\npartition = "main"\nsetup = ["sleep 300"]\n')
    told = {"HPCFIT_CLUSTERS": str(tmp_path / "clusters.toml")}
    options = ("--cluster", "slow", "--max-running", 1, "--tasks", 2)
    done = hpcfit("submit", "decay.toml", "-d", "camp", *options, cwd=tmp_path, **told)
    assert done.returncode == 0, done.stderr
    (submission,) = json.loads((tmp_path / "camp" / "submissions.json").read_text())["submissions"]
    subprocess.run(["scontrol", "uhold", submission["arrays"][0]["job"]], check=True)
    assert "held" in {task["state"] for task in status(tmp_path / "camp")["tasks"]}
    again = hpcfit("resume", "camp", cwd=tmp_path, **told)
    assert "released: job" in again.stderr
    assert "held" not in {task["state"] for task in status(tmp_path / "camp")["tasks"]}
    assert hpcfit("cancel", "camp", cwd=tmp_path).returncode == 0
    wait_for(empty_queue, 30)


def alive() -> set[str]:
    """Numbers of jobs that wait or run."""
    shown = subprocess.run(
        ["squeue", "--noheader", "--format=%F"], capture_output=True, text=True, check=True
    )
    return set(shown.stdout.split())
