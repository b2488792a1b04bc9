"""Recordings in HDF5: columns by name, some of the rows, and files that cannot be used."""

from __future__ import annotations

import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from hpcfit.files.recordings import is_recording, n_rows, read_recording, read_slice
from hpcfit.records import InputError

ROWS = 1_000_000


def columns_file(path: Path, **columns: object) -> Path:
    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            file[name] = values
    return path


def test_datasets_and_named_columns_are_the_same(tmp_path: Path) -> None:
    t, x, n = np.linspace(0.0, 1.0, 5), np.arange(5.0), np.arange(5)
    one = columns_file(tmp_path / "one.h5", t=t, x=x, n=n, note="a text", scalar=3.0)
    two = tmp_path / "two.hdf5"
    with h5py.File(two, "w") as file:
        file["table"] = np.stack([t, x, n], axis=1)
        file["table"].attrs["names"] = ["t", "x", "n"]
        file["cube"] = np.zeros((2, 2, 2))
    for path in (one, two):
        table = read_recording(path)
        assert sorted(table.columns) == ["n", "t", "x"]
        assert "x" in table.columns
        np.testing.assert_array_equal(table.columns["t"], t)
        np.testing.assert_array_equal(table.columns["n"], n)
        assert table.columns["n"].dtype == float
        assert len(table.sha256) == 64
        assert n_rows(path, ("t", "x")) == 5
        found = read_slice(path, 1, 3, ("x", "n"))
        assert list(found) == ["x", "n"]
        np.testing.assert_array_equal(found["x"], [1.0, 2.0])
        assert list(read_slice(path, 0, None)["x"]) == list(x)


def test_columns_inside_groups_have_paths_as_names(tmp_path: Path) -> None:
    path = columns_file(tmp_path / "g.h5", **{"run/t": [0.0, 1.0], "run/x": [2.0, 3.0]})
    with h5py.File(path, "a") as file:
        file["run/table"] = np.zeros((2, 2))
        file["run/table"].attrs["names"] = ["x", "y"]
    assert sorted(read_recording(path).columns) == ["run/t", "run/table/x", "run/table/y", "run/x"]


def test_a_million_rows_are_read_quickly_and_by_parts(tmp_path: Path) -> None:
    path = tmp_path / "long.h5"
    values = np.random.default_rng(1).standard_normal((ROWS, 4))
    with h5py.File(path, "w") as file:
        file["values"] = values
        file["values"].attrs["names"] = ["x", "y", "z", "s"]
        file["t"] = 0.01 * np.arange(ROWS)
    begin = time.perf_counter()
    parts = [read_slice(path, k * ROWS // 4, (k + 1) * ROWS // 4, ("t", "x", "z")) for k in range(4)]
    assert time.perf_counter() - begin < 2.0  # about 0.1 s on an idle core
    whole = np.concatenate([part["z"] for part in parts])
    np.testing.assert_array_equal(whole, values[:, 2])
    begin = time.perf_counter()
    few = read_slice(path, ROWS - 10, None, ("t", "y"))
    assert time.perf_counter() - begin < 0.2
    np.testing.assert_array_equal(few["y"], values[-10:, 1])


def test_a_file_is_known_by_its_name_or_its_first_bytes(tmp_path: Path) -> None:
    path = columns_file(tmp_path / "d.dat", t=[0.0, 1.0])
    assert is_recording(path)
    assert is_recording(Path("absent.h5"))
    (tmp_path / "d.csv").write_text("t,x\n0,1\n")
    assert not is_recording(tmp_path / "d.csv")
    assert not is_recording(tmp_path / "absent.csv")


def test_a_missing_file_and_what_is_not_hdf5(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.h5: no such file; paths are relative"):
        read_recording(tmp_path / "absent.h5")
    (tmp_path / "text.h5").write_text("t,x\n0,1\n")
    with pytest.raises(InputError, match="not an HDF5 file, or cut off; give HDF5"):
        read_recording(tmp_path / "text.h5")
    whole = columns_file(tmp_path / "whole.h5", t=np.zeros(10_000)).read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not an HDF5 file, or cut off"):
        read_recording(tmp_path / "cut.h5")
    (tmp_path / "folder.h5").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        read_recording(tmp_path / "folder.h5")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"note": "nothing but text"}, "no dataset of numbers; store one 1-d dataset per column"),
        ({"a": np.zeros((3, 2))}, "the columns of a have no names; give it an attribute names"),
    ],
)
def test_files_without_columns(columns: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_recording(columns_file(tmp_path / "d.h5", **columns))


def test_names_that_do_not_fit(tmp_path: Path) -> None:
    path = columns_file(tmp_path / "d.h5", a=np.zeros((3, 2)), x=np.zeros(3))
    with h5py.File(path, "a") as file:
        file["a"].attrs["names"] = ["t"]
    with pytest.raises(InputError, match="a has 2 columns and 1 names"):
        read_recording(path)
    with h5py.File(path, "a") as file:
        file["a"].attrs["names"] = ["t", "x"]
    with pytest.raises(InputError, match=r"two columns are called 'x' \(a and x\); rename one"):
        read_recording(path)


def test_slices_that_cannot_be(tmp_path: Path) -> None:
    path = columns_file(tmp_path / "d.h5", t=np.zeros(3), x=np.zeros(4))
    with pytest.raises(InputError, match="no dataset or column 'y'; there are t x"):
        read_slice(path, 0, 1, ("t", "y"))
    with pytest.raises(InputError, match="t has 3 rows, but x has 4; all columns need the same length"):
        read_slice(path, 0, 1)
    with pytest.raises(InputError, match="no rows 2 to 5; there are 3"):
        read_slice(path, 2, 5, ("t",))
