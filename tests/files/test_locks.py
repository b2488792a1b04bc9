"""One process at a time; the lock of a dead one is taken over, by one process only."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from hpcfit.files.locks import NAME, holder, locked
from hpcfit.records import InputError

TAKE = """
import sys, time
from pathlib import Path
from hpcfit.files.locks import locked
from hpcfit.records import InputError
while time.time() < float(sys.argv[2]):
    pass
try:
    with locked(Path(sys.argv[1]), "test"):
        print("taken", flush=True)
        time.sleep(1)
except InputError as error:
    print("refused", error)
"""


def text(pid: int, host: str | None = None) -> str:
    return json.dumps(
        {"host": host or platform.node(), "pid": pid, "born": "1", "time": "then", "what": "resume"}
    )


def dead_pid() -> int:
    done = subprocess.Popen(["true"])
    done.wait()
    return done.pid


def test_it_is_held_inside_and_gone_afterwards(tmp_path: Path) -> None:
    with locked(tmp_path, "resume"):
        found = holder(tmp_path)
        assert found is not None
        assert (found["pid"], found["host"], found["what"]) == (os.getpid(), platform.node(), "resume")
    assert not list(tmp_path.iterdir())
    assert holder(tmp_path) is None


def test_a_second_one_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    with locked(tmp_path, "resume"):
        refused = pytest.raises(InputError, match=f"another hpcfit is at work here.*process {os.getpid()}")
        with refused, locked(tmp_path, "resume"):
            pass
        assert holder(tmp_path) is not None


def test_an_error_inside_gives_it_back(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), locked(tmp_path, "resume"):
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(text(dead_pid()))
    assert holder(tmp_path) is None
    with locked(tmp_path, "resume"):
        found = holder(tmp_path)
        assert found is not None
        assert found["pid"] == os.getpid()
    assert not list(tmp_path.iterdir())


def test_a_pid_that_is_used_again_is_another_process(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(text(os.getpid()))  # born at another time
    with locked(tmp_path, "resume"):
        pass


@pytest.mark.parametrize("held", [text(1, "elsewhere"), "", "{", "[1]"])
def test_what_cannot_be_judged_from_here_is_not_taken_over(held: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(held)
    with pytest.raises(InputError, match=f"if it is dead, remove {tmp_path / NAME}"), locked(tmp_path, "x"):
        pass
    assert (tmp_path / NAME).read_text() == held


@pytest.mark.parametrize("stale", [True, False])
def test_of_many_at_once_one_has_it(stale: bool, tmp_path: Path) -> None:
    import time

    if stale:
        (tmp_path / NAME).write_text(text(dead_pid()))
    start = str(time.time() + 1.0)
    command = [sys.executable, "-c", TAKE, str(tmp_path), start]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    said = [run.communicate(timeout=30)[0] for run in runs]
    assert sum(line.startswith("taken") for line in said) == 1, said
    assert sum(line.startswith("refused") for line in said) == 7


def test_a_folder_without_permission_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write here"), locked(tmp_path / "nowhere", "x"):
        pass
