"""A file appears whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpcfit.files.replacing import replacing
from hpcfit.records import InputError


def test_the_new_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "result"
    target.write_text("old")
    with replacing(target) as part:
        part.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "result"
    target.write_text("old")

    def write_and_stumble() -> None:
        with replacing(target) as part:
            part.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_stumble()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_permissions_are_those_of_an_ordinary_new_file(tmp_path: Path) -> None:
    (tmp_path / "ordinary").write_text("")
    with replacing(tmp_path / "result") as part:
        part.write_text("")
    modes = [os.stat(tmp_path / name).st_mode for name in ("ordinary", "result")]
    assert modes[0] == modes[1]


def test_a_missing_folder_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write here"), replacing(tmp_path / "no" / "result"):
        pass
