"""CSV files as people have them: comments, missing values, compression, all digits."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from hpcfit.files.tables import read_table

DOUBLE_PENDULUM = Path(__file__).parents[3] / "shared" / "data" / "double_pendulum_recording.csv.gz"


def test_comments_blank_lines_spaces_and_missing_values(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("# made by hand\nt, x ,y\n\n0,1.5,\n1,nan,-2e3\n")
    table = read_table(path)
    assert list(table.columns) == ["t", "x", "y"]
    np.testing.assert_array_equal(table.columns["x"], [1.5, np.nan])
    np.testing.assert_array_equal(table.columns["y"], [np.nan, -2000.0])
    assert len(table) == 2


def test_numbers_keep_all_digits_and_compression_makes_no_difference(tmp_path: Path) -> None:
    values = np.random.default_rng(1).standard_normal(1000)
    text = "x\n" + "\n".join(map(repr, values.tolist()))
    (tmp_path / "d.csv").write_text(text)
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("d.csv", "d.csv.gz"):
        np.testing.assert_array_equal(read_table(tmp_path / name).columns["x"], values)


def test_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_bytes("\ufefft,x\r\n0,1\r\n1,2\r\n".encode())
    np.testing.assert_array_equal(read_table(tmp_path / "d.csv").columns["x"], [1.0, 2.0])


@pytest.mark.skipif(not DOUBLE_PENDULUM.exists(), reason="the recording is not part of the project")
def test_a_real_recording_can_be_read() -> None:
    table = read_table(DOUBLE_PENDULUM)
    assert list(table.columns) == ["t", "phi1", "phi2", "rate1", "rate2"]
    assert np.all(np.diff(table.columns["t"]) > 0.0)
