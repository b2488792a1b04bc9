"""The cache of kernels: whole files or none, whoever compiles at the same time; foreign ones are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hpcfit.kernels.cache import open_cache
from hpcfit.records import InputError
from tests.conftest import GOOD_JOB, Mpirun

RUN = """
import sys, time
from hpcfit.kernels.build import kernel_for
from hpcfit.models.catalogue import find
from hpcfit.flow.propagate import propagate
made = find("henon_heiles")
began = time.perf_counter()
kernel = kernel_for(made)
seconds = time.perf_counter() - began
lanes = propagate(made, [0.0, 1.0], [0.0, 0.0, 0.3, -0.41], list(made.examples[0].parameters.values()))
print(kernel.identity, lanes.states[0, 1].tobytes().hex(), seconds)
"""


def start(cache: Path) -> subprocess.Popen[str]:
    env = os.environ | {"HPCFIT_CACHE": str(cache)}
    return subprocess.Popen(
        [sys.executable, "-c", RUN], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out.split()


def kernels(cache: Path) -> list[Path]:
    return sorted(cache.glob("*.so"))


def test_processes_that_compile_the_same_model_at_once_do_not_collide(tmp_path: Path) -> None:
    """Three processes, an empty cache: the same kernel, the same bits, nothing half-made left behind."""
    cache = tmp_path / "cache"
    answers = [finished(process) for process in [start(cache) for _ in range(3)]]
    assert len({(identity, bits) for identity, bits, _ in answers}) == 1
    assert {path.name.split("-")[0] for path in cache.iterdir()} == {answers[0][0]}
    assert {path.suffix for path in cache.iterdir()} == {".so"}


def test_four_ranks_compile_the_same_model_at_once(
    tmp_path: Path, mpirun: Mpirun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCFIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "job.toml").write_text(GOOD_JOB)
    done = mpirun(4, "-m", "hpcfit", "run", "job.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "job.h5").exists()
    assert kernels(tmp_path / "cache")
    assert {path.suffix for path in (tmp_path / "cache").iterdir()} == {".so"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str, list[str]]:
    """A kernel's file, its name, and what it answers."""
    cache = tmp_path_factory.mktemp("filled") / "cache"
    answer = finished(start(cache))
    (path,) = kernels(cache)
    return path.read_bytes(), path.name, answer[:2]


@pytest.mark.parametrize("damage", ["empty", "truncated", "one bit", "text", "folder of none"])
def test_a_damaged_kernel_is_rebuilt(
    damage: str, tmp_path: Path, filled: tuple[bytes, str, list[str]]
) -> None:
    content, name, answer = filled
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    spoilt = {
        "empty": b"",
        "truncated": content[: len(content) // 2],
        "one bit": bytes(flipped),
        "text": b"#!/bin/sh\n",
    }
    if damage in spoilt:
        (cache / name).write_bytes(spoilt[damage])
    assert finished(start(cache))[:2] == answer
    (path,) = kernels(cache)
    assert len(path.read_bytes()) == len(content)


def test_another_models_kernel_under_this_name_is_not_loaded(
    tmp_path: Path, filled: tuple[bytes, str, list[str]]
) -> None:
    """A whole shared object with other content is rebuilt, too: the name says what must be inside."""
    content, name, answer = filled
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    (cache / name).write_bytes(content + b"\0")
    assert finished(start(cache))[:2] == answer


def test_from_the_cache_a_kernel_loads_in_a_tenth_of_a_second(
    tmp_path: Path, filled: tuple[bytes, str, list[str]]
) -> None:
    """In a new process, from asking for the kernel to having it; the best of three."""
    content, name, _ = filled
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    (cache / name).write_bytes(content)
    assert min(float(finished(start(cache))[2]) for _ in range(3)) < 0.1


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(mode)
    monkeypatch.setenv("HPCFIT_CACHE", str(cache))
    with pytest.raises(InputError, match=rf"{cache}: others may write to it; run chmod 700 {cache}"):
        open_cache()


def test_the_folder_is_made_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCFIT_CACHE", str(tmp_path / "a" / "b"))
    before = os.umask(0)
    try:
        assert open_cache().stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


def test_a_file_in_place_of_the_folder_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("HPCFIT_CACHE", str(tmp_path / "cache"))
    with pytest.raises(InputError, match="set HPCFIT_CACHE to another folder"):
        open_cache()


def test_without_a_compiler_the_message_offers_the_other_method(tmp_path: Path) -> None:
    """An empty cache and no cc: status 2 and the remedy; with it, the same numbers to 1e-9."""
    empty = tmp_path / "bin"
    empty.mkdir()
    env = {key: value for key, value in os.environ.items() if key != "CC"}
    env |= {"PATH": str(empty), "HPCFIT_CACHE": str(tmp_path / "cache")}
    (tmp_path / "job.toml").write_text(GOOD_JOB)
    (tmp_path / "other.toml").write_text(GOOD_JOB + 'method = "extrapolation"\n')

    def call(name: str, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "hpcfit", "run", name],
            cwd=tmp_path,
            env=env | changes,
            capture_output=True,
            text=True,
            timeout=60,
        )

    refused = call("job.toml")
    assert refused.returncode == 2
    assert "no C compiler found" in refused.stderr
    assert 'method = "extrapolation"' in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "job.h5").exists()
    assert call("other.toml").returncode == 0
    assert call("job.toml", PATH=os.environ["PATH"]).returncode == 0
    from hpcfit.files.results import load

    one, other = (load(tmp_path / f"{name}.h5").record.states for name in ("job", "other"))
    assert np.abs(one - other).max() <= 1e-9
