"""doctor: every part is named, and each that is missing has a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcfit.__main__ import main
from hpcfit.kernels.cache import open_cache
from hpcfit.records import InputError

PARTS = ("MPI", "MPI launcher", "parallel HDF5", "PETSc with MUMPS", "C compiler", "CPU", "cache", "SLURM")


def test_all_parts_are_named_and_what_is_missing_has_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HPCFIT_CACHE", str(tmp_path / "cache"))
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    for part in PARTS:
        assert f" {part} " in shown
    assert shown.count("remedy:") == shown.count("without ") + shown.count("MISSING ")


def test_a_cache_that_others_may_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("HPCFIT_CACHE", str(folder))
    with pytest.raises(InputError, match="others may write to it; run chmod 700"):
        open_cache()


def test_a_new_cache_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCFIT_CACHE", str(tmp_path / "a" / "cache"))
    assert open_cache().stat().st_mode & 0o777 == 0o700
