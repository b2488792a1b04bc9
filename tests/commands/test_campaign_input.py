"""Campaigns: what is refused, with one clear message, and nothing half-submitted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcfit.__main__ import main
from hpcfit.files.results import load
from hpcfit.records import Outcome
from tests.minicluster import empty_queue, minicluster

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
members = 20
"""


@pytest.fixture
def decay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A campaign's job in an empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HPCFIT_CLUSTERS", str(tmp_path / "none.toml"))
    path = tmp_path / "decay.toml"
    path.write_text(DECAY)
    return path


@pytest.fixture
def no_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    without = [part for part in os.environ["PATH"].split(":") if not (Path(part) / "sbatch").exists()]
    monkeypatch.setenv("PATH", ":".join(without))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    with minicluster(1, 1) as folder:
        yield folder


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that is said when a command is refused."""
    capsys.readouterr()
    assert main(["-q", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("no_slurm")
@pytest.mark.parametrize("option", ["--cluster=big", "--partition=main", "--time=01:00:00"])
def test_slurm_is_asked_for_and_not_there(
    option: str, decay: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "submit", "decay.toml", "-d", "camp", option)
    assert "there is no sbatch here; load the cluster's SLURM module, or give --local" in said
    assert names(decay.parent) == ["decay.toml"]


def test_slurm_does_not_answer(
    decay: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpcfit.cluster.slurm.SECONDS", 1.0)
    monkeypatch.setenv("SLURM_CONF", "/nonexistent")
    monkeypatch.setattr("hpcfit.cluster.slurm.is_here", lambda: True)
    said = refused(capsys, "submit", "decay.toml", "-d", "camp", "--partition=main")
    assert "scontrol: no answer in 1 s; try again when SLURM answers" in said
    assert names(decay.parent) == ["decay.toml"]


def test_an_unknown_partition_in_the_words_of_sbatch(
    decay: Path, cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "submit", "decay.toml", "-d", "camp", "--partition=nowhere")
    assert "invalid partition specified: nowhere" in said
    assert empty_queue()
    assert names(decay.parent) == ["decay.toml"]


def test_an_unknown_cluster(decay: Path, cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (decay.parent / "none.toml").write_text('[small]\npartition = "main"\n')
    assert "no cluster 'big'; it has: small" in refused(
        capsys, "submit", "decay.toml", "-d", "camp", "--cluster=big"
    )


def test_folders_whose_names_slurm_would_change(
    decay: Path, cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "submit", "decay.toml", "-d", "100%j", "--partition=main")
    assert "a meaning of its own; choose another folder" in said


def test_no_member_at_all(decay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "submit", "decay.toml", "-d", "camp", "--local", "--set", "ensemble.members=0")
    assert "members" in said
    assert names(decay.parent) == ["decay.toml"]


def test_a_job_that_is_no_ensemble(decay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decay.write_text(DECAY.replace('"ensemble"', '"fit"').partition("[ensemble]")[0])
    said = refused(capsys, "submit", "decay.toml", "-d", "camp", "--local")
    assert "a campaign is an ensemble; run this job by: hpcfit run decay.toml" in said


def test_options_of_slurm_and_local_at_once(decay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "submit", "decay.toml", "-d", "camp", "--local", "--partition=main")
    assert "--partition belongs to SLURM, and --local runs without it" in said


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('setup = ["touch /tmp/x"]', "unknown key"),
        ('launcher = "rm"', "unknown key"),
        ('options = ["--wrap=id"]', "--wrap is set by hpcfit"),
        ('options = ["--uid=0"]', "belongs into the user's configuration"),
        ('partition = "a\\nb"', "cannot be printed"),
        ('time = "soon"', "'soon' is no time"),
        ('memory = "2 G"', "unit"),
    ],
)
def test_what_a_job_may_not_say_of_clusters(
    table: str, said: str, decay: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decay.write_text(f"{DECAY}[cluster]\n{table}\n")
    assert said in refused(capsys, "submit", "decay.toml", "-d", "camp", "--local")
    assert names(decay.parent) == ["decay.toml"]


@pytest.fixture
def campaign(decay: Path) -> Path:
    """A finished campaign of 20 members."""
    assert main(["-q", "submit", "decay.toml", "-d", "camp", "--local", "--ranks", "1"]) == 0
    return decay.parent / "camp"


def test_a_folder_that_belongs_to_another_job(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (campaign / "result.h5").stat().st_mtime_ns
    said = refused(capsys, "submit", "decay.toml", "-d", "camp", "--local", "--set", "seed=2")
    assert "belongs to another job" in said
    assert (campaign / "result.h5").stat().st_mtime_ns == before


def test_a_folder_with_other_things(decay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (decay.parent / "camp").mkdir()
    (decay.parent / "camp" / "thesis.tex").write_text("")
    said = refused(capsys, "submit", "decay.toml", "-d", "camp", "--local")
    assert "exists and is no campaign of hpcfit; choose another folder" in said
    assert names(decay.parent / "camp") == ["thesis.tex"]


def test_a_file_in_the_place_of_the_folder(decay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (decay.parent / "camp").write_text("")
    assert "choose another folder" in refused(capsys, "submit", "decay.toml", "-d", "camp", "--local")


def test_fewer_members_than_there_are(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "submit", "decay.toml", "-d", "camp", "--local", "--set", "ensemble.members=10")
    assert "has 20 members already, not 10" in said


@pytest.mark.parametrize("verb", ["status", "resume", "cancel", "merge"])
def test_what_is_no_campaign(verb: str, decay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "holds no campaign" in refused(capsys, verb, ".")


def test_members_that_are_not_there(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for member in ("0", "21", "-1", "x", "1.5", "²"):
        said = refused(capsys, "logs", "camp", *([] if member != "-1" else ["--"]), member)
        assert "give a number from 1 to 20, or merge" in said


def test_a_folder_without_permission(decay: Path) -> None:
    """As another user: root may write everywhere."""
    closed = decay.parent / "closed"
    closed.mkdir(mode=0o500)
    command = [sys.executable, "-m", "hpcfit", "submit", str(decay), "-d", str(closed / "camp"), "--local"]
    if os.geteuid() == 0:
        for folder in (decay.parent, *decay.parent.parents[:2]):
            folder.chmod(0o755)
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    environment = os.environ | {"HPCFIT_CACHE": f"/tmp/hpcfit-cache-of-another-{os.getpid()}"}
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert "Permission denied" in done.stderr
    assert "Traceback" not in done.stderr
    assert names(closed) == []


def test_the_dry_run_prints_the_scripts_and_changes_nothing(
    decay: Path, cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["submit", "decay.toml", "-d", "camp", "--dry-run", "--partition=main", "--tasks=4"]
    assert main([*command, "--max-running=2"]) == 0
    shown = capsys.readouterr().out
    for part in ("#SBATCH --array=0-3%2", "#SBATCH --partition=main", "--dependency=afterany:JOB1"):
        assert part in shown
    assert names(decay.parent) == ["decay.toml"]
    assert empty_queue()


def test_status_of_a_finished_campaign(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "camp", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["done"], found["members"], found["merged"]) == (20, 20, True)
    assert main(["logs", "camp", "7"]) == 0
    assert "member 7: task" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("job.toml", "job.toml or a file in inputs/ is not the one that was submitted"),
        ("kernels", "files with machine code are missing"),
        ("plan.json", "was submitted with hpcfit 0.0.9"),
        ("submissions.json", "is damaged"),
    ],
)
def test_a_campaign_that_was_changed_is_not_resumed(
    file: str, said: str, campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = campaign / file
    if file == "kernels":
        next(path.glob("*.so")).unlink()
    elif file == "plan.json":
        plan = json.loads(path.read_text())
        path.write_text(json.dumps(plan | {"version": "0.0.9"}))
    elif file == "submissions.json":
        path.write_text(path.read_text().replace('"merge": ""', '"merge": "1; rm"'))
    else:
        path.write_text(path.read_text().replace("k = 0.4", "k = 0.3"))
    assert said in refused(capsys, "resume", "camp")


def test_a_changed_input_is_not_resumed(decay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (decay.parent / "grid.csv").write_text("t\n0\n0.5\n1\n1.5\n")
    inner = 'times = {file = "grid.csv"}'
    decay.write_text(DECAY.replace("times = {start = 0.0, spacing = 0.5, count = 4}", inner))
    assert main(["-q", "submit", "decay.toml", "-d", "camp", "--local"]) == 0
    (copy,) = (decay.parent / "camp" / "inputs").iterdir()
    (decay.parent / "grid.csv").unlink()
    assert main(["-q", "resume", "camp"]) == 0  # the campaign has its own copy
    copy.write_text("t\n0\n0.5\n1\n1.7\n")
    assert "is not the one that was submitted" in refused(capsys, "resume", "camp")


def test_a_folder_that_is_only_prepared_can_be_worked_on_by_hand(
    decay: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As other schedulers do."""
    command = ["-q", "submit", "decay.toml", "-d", "camp", "--local", "--prepare", "--tasks", "2"]
    assert main(command) == 0
    assert not list((decay.parent / "camp" / "tasks").iterdir())
    for words in (["task", "camp", "0"], ["task", "camp", "1"], ["merge", "camp"]):
        done = subprocess.run([sys.executable, "-m", "hpcfit", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert main(["status", "camp"]) == 0
    assert "20 of 20 done" in capsys.readouterr().out


LOGIN_NODE = """
import sys
from hpcfit.__main__ import main
status = main(sys.argv[1:])
h5py = sys.modules.get("h5py")
print(status, "mpi4py" in sys.modules, bool(h5py and h5py.get_config().mpi))
"""


def test_login_nodes_see_neither_mpi_nor_parallel_hdf5(campaign: Path, cluster: Path) -> None:
    for words in (
        ["submit", "../decay.toml", "-d", "other", "--dry-run", "--partition=main"],
        ["resume", ".", "--dry-run"],
        ["status", "."],
        ["logs", ".", "1"],
        ["merge", "."],
        ["cancel", "."],
    ):
        done = subprocess.run(
            [sys.executable, "-c", LOGIN_NODE, *words],
            cwd=campaign,
            env=os.environ | {"H5PY_ALWAYS_USE_MPI": "1"},
            capture_output=True,
            text=True,
        )
        assert done.stdout.splitlines()[-1] == "0 False False", (words, done.stdout, done.stderr)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_disk_without_room(decay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disk = decay.parent / "disk"
    disk.mkdir()
    small = ["mount", "-t", "tmpfs", "-o", "size=16k", "hpcfit-test", str(disk)]
    if subprocess.run(small, capture_output=True).returncode:
        pytest.skip("no mounts here")
    try:
        said = refused(capsys, "submit", "decay.toml", "-d", "disk/camp", "--local")
        assert "No space left" in said
        assert names(disk) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


STUCK = DECAY.replace("[guess]\nk = 0.4", '[fit]\nmax_iterations = 4\nphases = "exact"\n[guess]\nk = 3.0')


def test_what_failed_is_computed_again_from_another_guess(
    decay: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The members that failed, and no others; with the data that they had. The first result stays."""
    decay.write_text(STUCK)
    assert main(["-q", "submit", "decay.toml", "-d", "camp", "--local"]) == 0
    first = load(decay.parent / "camp" / "result.h5").record
    failed = [k for k, end in zip(first.members, first.outcomes, strict=True) if end is not Outcome.CONVERGED]
    assert failed
    before = (decay.parent / "camp" / "result.h5").read_bytes()
    other = ["--set", "guess.k=0.5", "--set", "fit.max_iterations=50"]
    assert main(["-q", "resume", "camp", "--failed", *other]) == 0
    again = load(decay.parent / "camp" / "again" / "1" / "result.h5").record
    assert list(again.members) == failed
    assert set(again.outcomes) == {Outcome.CONVERGED}
    assert (decay.parent / "camp" / "result.h5").read_bytes() == before
    member = str(failed[-1])
    assert main(["-q", "run", "decay.toml", *other, "--member", member]) == 0
    alone = load(decay.parent / f"decay-{member}.h5").record
    assert alone.parameters["k"] == again.estimates[-1, list(again.names).index("k")]
    assert main(["-q", "resume", "camp/again/1", "--failed"]) == 0  # none
    assert main(["-q", "status", "camp/again/1"]) == 0
    assert f"{len(failed)} of {len(failed)} done" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "guess.k=1"], "give --failed, too"),
        (["--failed", "--set", "seed=2"], "would be another experiment"),
        (["--failed", "--set", "guess.q=2"], "there is no parameter 'q'"),
    ],
)
def test_what_is_not_computed_again(
    words: list[str], said: str, decay: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decay.write_text(STUCK)
    assert main(["-q", "submit", "decay.toml", "-d", "camp", "--local"]) == 0
    assert said in refused(capsys, "resume", "camp", *words)
    assert not (decay.parent / "camp" / "again").exists()
