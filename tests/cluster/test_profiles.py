"""Profiles: what is read from where, who wins, and what a job may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcfit.cluster.profiles import Profile, combined, read_profile
from hpcfit.cluster.times import seconds_of, time_text
from hpcfit.records import InputError

FILE = """
default = "small"
[small]
partition = "main"
[big]
partition = "long"
account = "chaos"
qos = "high"
time = "1-00:00:00"
memory = "2G"
ranks = 64
max_tasks = 5000
max_running = 200
launcher = "srun --mpi=pmi2"
modules = ["python/3.11", "openmpi"]
setup = ["source ~/venv/bin/activate"]
cpu = "x86-64-v3"
options = ["--constraint=rome", "--exclusive"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "clusters.toml"
    path.write_text(FILE)
    return path


def test_without_configuration_there_is_the_plain_profile(tmp_path: Path) -> None:
    assert read_profile(None, tmp_path / "none.toml") == Profile()
    with pytest.raises(InputError, match="there is no cluster 'big': no such file"):
        read_profile("big", tmp_path / "none.toml")


def test_the_default_and_a_named_profile(file: Path) -> None:
    assert read_profile(None, file) == Profile(name="small", partition="main")
    big = read_profile("big", file)
    assert (big.ranks, big.launcher, big.modules) == (64, "srun --mpi=pmi2", ("python/3.11", "openmpi"))
    with pytest.raises(InputError, match="no cluster 'huge'; it has: small, big"):
        read_profile("huge", file)


def test_the_configuration_is_found_by_its_variable(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCFIT_CLUSTERS", str(file))
    assert read_profile("big").account == "chaos"


def test_the_command_line_wins_over_the_job_and_that_over_the_profile(file: Path) -> None:
    job = {"partition": "short", "ranks": 8, "options": ["--constraint=milan", "--nice=10"]}
    by_job = combined(read_profile("big", file), job, "job.toml", foreign=True)
    profile = combined(by_job, {"ranks": 2}, "the command line")
    assert (profile.partition, profile.ranks, profile.account) == ("short", 2, "chaos")
    assert profile.options == ("--constraint=milan", "--exclusive", "--nice=10")


@pytest.mark.parametrize("key", ["launcher", "modules", "setup", "cpu"])
def test_a_job_gives_no_shell_lines(key: str) -> None:
    with pytest.raises(InputError, match=f"{key}.*unknown key"):
        combined(Profile(), {key: "touch /tmp/x"}, "job.toml")


@pytest.mark.parametrize(
    "option",
    ["--wrap=id", "--output=/tmp/x", "--export=ALL,X=1", "--uid=0", "--mail-user=a@b", "--chdir=/", "--bb=x"],
)
def test_a_job_gives_resources_only(option: str) -> None:
    with pytest.raises(InputError, match=option.partition("=")[0]):
        combined(Profile(), {"options": [option]}, "job.toml", foreign=True)


def test_the_command_line_gives_what_hpcfit_does_not_set() -> None:
    found = combined(Profile(), {"options": ["--mail-user=me"]}, "the command line")
    assert found.options == ("--mail-user=me",)
    with pytest.raises(InputError, match="--output is set by hpcfit"):
        combined(Profile(), {"options": ["--output=x"]}, "the command line")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("partition", "a\n#SBATCH --wrap=id"),
        ("partition", "a\rb"),
        ("account", ""),
        ("ranks", 0),
        ("ranks", True),
        ("memory", "2 G; id"),
        ("time", "soon"),
        ("options", ["constraint=a"]),
        ("options", ["--constraint=a\nb"]),
        ("options", "--constraint=a"),
        ("modules", ["a\nb"]),
        ("colour", "red"),
    ],
)
def test_values_that_cannot_be(key: str, value: object) -> None:
    with pytest.raises(InputError, match=key):
        combined(Profile(), {key: value}, "clusters.toml", shell=True)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(InputError) as raised:
        combined(Profile(), {"ranks": 0, "memory": "x"}, "clusters.toml: big", shell=True)
    assert len(raised.value.mistakes) == 2


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("90:30", 5430),
        ("01:30:00", 5400),
        ("1-12", 129600),
        ("1-12:30", 131400),
        ("1-12:30:05", 131405),
    ],
)
def test_times_as_slurm_writes_them(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds
    assert seconds_of(time_text(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "0", "1:2:3:4", "-5", "UNLIMITED", "1 h"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(InputError, match="time"):
        seconds_of(text)
