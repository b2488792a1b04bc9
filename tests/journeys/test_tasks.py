"""Campaigns task by task: any ranks, chunks and accidents give the numbers of one plain run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from hpcfit.__main__ import main
from hpcfit.files.campaigns import done_members, notes, parts, task_file
from tests.campaign_material import make_campaign
from tests.conftest import ROOT

DECAY = """
kind = "ensemble"
seed = 1
[model]
states = ["x"]
parameters = ["k"]
equations = {x = "-k*x"}
[truth]
start = {x = 1.0}
parameters = {k = 0.5}
times = {start = 0.0, spacing = 0.5, count = 4}
noise = {sd = 0.01}
[guess]
k = 0.4
[ensemble]
of = "fit"
members = MEMBERS
"""
GRID = """
[ensemble.grid]
"guess.k" = [0.4, 2.0, 40.0]
size = {from = 0.01, to = 0.1, count = 2, log = true}
"truth.times.count" = [4, 6]
"""
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(ROOT),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "campaign"


def write_job(members: int, *, grid: bool = False) -> Path:
    text = DECAY.replace("MEMBERS", str(members))
    if grid:
        text = text.replace("noise = {sd = 0.01}", 'noise = {sd = "size"}') + GRID
    Path("decay.toml").write_text(text)
    return Path("decay.toml")


def start(ranks: int, folder: Path, task: int, **variables: str) -> subprocess.Popen[str]:
    command = ["mpirun", "-n", str(ranks)] if ranks else []
    return subprocess.Popen(
        [*command, sys.executable, "-m", "hpcfit", "task", str(folder), str(task)],
        env=os.environ | ENVIRONMENT | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run_task(ranks: int, folder: Path, task: int, **variables: str) -> tuple[int, str]:
    process = start(ranks, folder, task, **variables)
    said, _ = process.communicate(timeout=100)
    return process.returncode, said


def finish(ranks: int, folder: Path, task: int, **variables: str) -> str:
    status, said = run_task(ranks, folder, task, **variables)
    assert status == 0, said
    return said


def numbers(path: Path) -> dict[str, Any]:
    """All datasets of numbers by name."""
    found: dict[str, Any] = {}

    def keep(name: str, part: Any) -> None:
        if isinstance(part, h5py.Dataset) and part.dtype.kind in "if":
            found[name] = part[()]

    with h5py.File(path) as file:
        file.visititems(keep)
    return found


def assert_as_one_run(folder: Path) -> None:
    """The merged result has the numbers of `hpcfit run` on one rank."""
    assert main(["-q", "merge", str(folder)]) == 0
    main(["-q", "run", "decay.toml", "--overwrite"])
    one, merged = numbers(Path("decay.h5")), numbers(folder / "result.h5")
    assert list(one) == list(merged)
    for name, values in one.items():
        assert values.dtype == merged[name].dtype
        np.testing.assert_array_equal(values, merged[name], err_msg=name)


@pytest.mark.parametrize("grid", [False, True])
def test_ranks_and_chunks_do_not_matter(folder: Path, grid: bool) -> None:
    plan = make_campaign(write_job(300 if not grid else 25, grid=grid), folder, task=75, chunk=23)
    assert plan.members == 300
    for task, ranks in enumerate((0, 1, 2, 3)):
        said = finish(ranks, folder, task)
        assert f"task {task}: 0 of 75 members are there" in said
        assert f"task {task}: complete; 75 members" in said
    assert parts(folder) == []
    assert done_members(folder) == [(0, 300)]
    assert_as_one_run(folder)


def test_fewer_members_than_ranks(folder: Path) -> None:
    make_campaign(write_job(4), folder, task=4, chunk=2)
    finish(3, folder, 0)
    assert_as_one_run(folder)


def wait_for_parts(folder: Path, process: subprocess.Popen[str], count: int) -> None:
    while len(parts(folder)) < count:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)


@pytest.mark.parametrize("victim", ["rank", "task"])
def test_a_killed_task_goes_on_where_it_was(folder: Path, victim: str) -> None:
    make_campaign(write_job(20_000), folder, task=20_000, chunk=1000)
    process = start(2, folder, 0)
    wait_for_parts(folder, process, 3)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ranks = [int(each) for each in children if b"hpcfit" in Path(f"/proc/{each}/cmdline").read_bytes()]
    assert len(ranks) == 2
    for pid in ranks[-1:] if victim == "rank" else [process.pid, *ranks]:
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode != 0
    kept = sum(part.last - part.first for part in parts(folder))
    assert 3000 <= kept < 20_000
    said = finish(3, folder, 0)
    assert f"task 0: {kept:,} of 20,000 members are there" in said
    assert f"complete; {20_000 - kept:,} members" in said
    assert not list((folder / "parts").glob("*.h5"))
    assert_as_one_run(folder)
    assert not list((folder / "parts").iterdir())


@pytest.mark.parametrize(("ranks", "number"), [(0, signal.SIGTERM), (0, signal.SIGUSR1), (2, signal.SIGUSR1)])
def test_a_signal_ends_a_task_at_the_end_of_a_chunk(folder: Path, ranks: int, number: int) -> None:
    make_campaign(write_job(20_000), folder, task=20_000, chunk=1000)
    process = start(ranks, folder, 0)
    wait_for_parts(folder, process, 2)
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 75, said
    assert f"left early: {signal.Signals(number).name}" in said
    ((_, _, note),) = notes(folder)
    assert note["status"] == 75
    kept = sum(part.last - part.first for part in parts(folder))
    assert note["members"] == sum(note["outcomes"].values()) == kept >= 2000
    finish(ranks, folder, 0)
    assert_as_one_run(folder)


def test_a_task_leaves_before_its_deadline(folder: Path) -> None:
    make_campaign(write_job(100), folder, task=100, chunk=10)
    status, said = run_task(2, folder, 0, HPCFIT_DEADLINE=str(time.time() - 1.0))
    assert status == 75, said
    assert "left early: the deadline" in said
    assert parts(folder) == []
    status, said = run_task(0, folder, 0, HPCFIT_DEADLINE="tomorrow")
    assert status == 2
    assert "HPCFIT_DEADLINE: 'tomorrow' is not a time" in said
    finish(0, folder, 0, HPCFIT_DEADLINE=str(time.time() + 1000.0))


def test_an_unreadable_part_is_set_aside_and_computed_again(folder: Path) -> None:
    make_campaign(write_job(20_000), folder, task=20_000, chunk=1000)
    process = start(0, folder, 0)
    wait_for_parts(folder, process, 4)
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=60)
    first, second, third, *_ = sorted((folder / "parts").glob("*.h5"))
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    first.write_bytes(content)
    second.write_bytes(second.read_bytes()[:-100])
    with h5py.File(third, "r+") as file:  # HDF5's own checksums are right
        file["estimates"][3, 0] += 1e-15
    said = finish(2, folder, 0)
    assert said.count("set aside as") == 3, said
    assert "its checksums are wrong" in said
    assert len(list((folder / "parts").glob("*.unreadable"))) == 3
    assert_as_one_run(folder)


def test_twins_do_no_harm(folder: Path) -> None:
    make_campaign(write_job(8000), folder, task=8000, chunk=500)
    twins = [start(2, folder, 0), start(0, folder, 0)]
    for twin in twins:
        said, _ = twin.communicate(timeout=100)
        assert twin.returncode == 0, said
    assert_as_one_run(folder)


def test_a_damaged_task_file_is_computed_again(folder: Path) -> None:
    make_campaign(write_job(200), folder, task=100, chunk=50)
    for task in (0, 1):
        finish(0, folder, task)
    content = bytearray(task_file(folder, 1).read_bytes())
    content[len(content) // 2] ^= 1
    task_file(folder, 1).write_bytes(content)
    assert main(["-q", "merge", str(folder)]) == 2
    assert not task_file(folder, 1).exists()  # set aside
    finish(0, folder, 1)
    assert_as_one_run(folder)


def test_more_members_compute_only_the_new_ones(folder: Path) -> None:
    make_campaign(write_job(100), folder, task=100, chunk=40)
    finish(0, folder, 0)
    assert_as_one_run(folder)
    old = task_file(folder, 0).stat()
    make_campaign(write_job(200), folder, task=100, chunk=40)
    assert "complete; nothing to do" in finish(0, folder, 0)
    assert "complete; 100 members" in finish(0, folder, 1)
    assert task_file(folder, 0).stat().st_mtime_ns == old.st_mtime_ns
    assert_as_one_run(folder)
    with h5py.File(folder / "result.h5") as file:
        np.testing.assert_array_equal(file["members"][()], np.arange(1, 201))


def test_a_merge_says_what_is_missing_and_is_repeatable(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_campaign(write_job(300), folder, task=100, chunk=50)
    finish(0, folder, 0)
    capsys.readouterr()
    assert main(["merge", str(folder)]) == 2
    said = capsys.readouterr().err
    assert "200 of 300 members are missing, of task 1, 2; continue with hpcfit resume" in said
    assert main(["-q", "merge", str(folder), "--partial"]) == 0
    with h5py.File(folder / "partial.h5") as file:
        np.testing.assert_array_equal(file["members"][()], np.arange(1, 101))
    finish(0, folder, 1)
    finish(0, folder, 2)
    assert main(["-q", "merge", str(folder)]) == 0
    before = (folder / "result.h5").stat().st_ino
    assert main(["-q", "merge", str(folder)]) == 0
    assert (folder / "result.h5").stat().st_ino == before
    content = bytearray((folder / "result.h5").read_bytes())
    content[len(content) // 3] ^= 1
    (folder / "result.h5").write_bytes(content)
    assert main(["-q", "merge", str(folder)]) == 0  # a damaged result is made again
    assert_as_one_run(folder)
    provenance = json.loads(h5py.File(folder / "result.h5")["provenance"].attrs["json"])
    assert provenance["campaign"]["members"] == 300
    assert provenance["campaign"]["core_hours"] > 0.0
    assert [task["first"] for task in provenance["tasks"]] == [0, 100, 200]


def change_job(folder: Path) -> None:
    text = (folder / "job.toml").read_text()
    (folder / "job.toml").write_text(text.replace("k = 0.4", "k = 0.41"))


def change_plan(folder: Path, **values: Any) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps(plan | values))


def lose_kernel(folder: Path) -> None:
    next((folder / "kernels").glob("*.so")).unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (change_job, "is not the one that was submitted"),
        (lambda folder: change_plan(folder, version="0.0.9"), "was submitted with hpcfit 0.0.9"),
        (lambda folder: change_plan(folder, kernel="0" * 32), "the machine code in kernels/ is"),
        (
            lambda folder: change_plan(folder, tasks=[[0, 40], [50, 100]]),
            "its tasks are not those of the job",
        ),
        (lose_kernel, "files with machine code are missing"),
        (
            lambda folder: (folder / "kernels" / "compiler.json").unlink(),
            "machine code of the campaign cannot",
        ),
        (lambda folder: (folder / "plan.json").unlink(), "holds no campaign"),
        (lambda folder: (folder / "parts").rmdir(), "No such file or directory"),
    ],
)
def test_what_was_changed_is_refused_with_one_message(folder: Path, change: Any, said: str) -> None:
    make_campaign(write_job(100), folder, task=100, chunk=50)
    change(folder)
    status, text = run_task(2 if said.startswith("the machine") else 0, folder, 0)
    assert status == 2, text
    lines = [line for line in text.splitlines() if line.startswith("hpcfit: ")]
    assert len(lines) == 1, text
    assert said in lines[0]
    assert "Traceback" not in text
    assert not list((folder / "tasks").glob("*.h5"))


def test_a_task_that_is_not_there(folder: Path) -> None:
    make_campaign(write_job(100), folder, task=100, chunk=50)
    status, said = run_task(0, folder, 1)
    assert status == 2
    assert "the campaign has no task 1; give one of 0 to 0" in said


def test_tasks_need_neither_compiler_nor_home(folder: Path, tmp_path: Path) -> None:
    make_campaign(write_job(50), folder, task=50, chunk=50)
    for name in (".cache", "home"):
        (tmp_path / name).mkdir()
    variables = {"HOME": str(tmp_path / "home"), "CC": "", "HPCFIT_CACHE": str(tmp_path / ".cache")}
    finish(0, folder, 0, **variables, PATH="/nonexistent")
    assert not list((tmp_path / "home").iterdir())
    assert not list((tmp_path / ".cache").iterdir())
    assert_as_one_run(folder)


ONE_WRITER = """
import sys
from hpcfit.commands import task
from hpcfit.files import parts
task.parallel_h5py = parts.parallel_h5py = lambda: None
from hpcfit.__main__ import main
sys.exit(main(["task", sys.argv[1], "0"]))
"""


def test_without_parallel_hdf5_one_rank_writes(folder: Path) -> None:
    make_campaign(write_job(50), folder, task=50, chunk=20)
    done = subprocess.run(
        ["mpirun", "-n", "2", sys.executable, "-c", ONE_WRITER, str(folder)],
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "no parallel HDF5: rank 0 writes for all" in done.stderr
    assert_as_one_run(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_one_message_and_nothing_is_lost(folder: Path) -> None:
    make_campaign(write_job(20_000), folder, task=20_000, chunk=1000)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder / "parts")], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this container may not mount")
    try:
        status, said = run_task(2, folder, 0)
        assert status == 2, said
        (line,) = [line for line in said.splitlines() if line.startswith("hpcfit: ")]
        assert re.search(r"parts/0-\d+-\d+\S+\.h5: cannot be written: No space left on device", line)
        kept = sum(part.last - part.first for part in parts(folder))
        assert kept >= 1000
        assert not list((folder / "parts").glob(".*"))
        subprocess.run(["mount", "-o", "remount,size=10m", str(folder / "parts")], check=True)
        said = finish(2, folder, 0)
        assert f"{kept:,} of 20,000 members are there" in said
    finally:
        subprocess.run(["umount", str(folder / "parts")], check=True)
    assert_as_one_run(folder)
