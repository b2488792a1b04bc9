"""Tables of numbers as text: CSV with one header line; lines that begin with # are comments."""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hpcfit.records import Array, InputError

LARGEST_FILE = 2_000_000_000  # bytes


@dataclass(frozen=True)
class Table:
    """Columns of a CSV file by name; an empty field or 'nan' is NaN."""

    path: Path
    columns: Mapping[str, Array]
    sha256: str

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


def read_table(path: Path) -> Table:
    """Read a CSV file (also .gz); every mistake names the file, the line and the column."""
    raw = _bytes(path)
    try:
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not readable as text ({error}); export it as UTF-8 CSV") from None
    lines = [
        (i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")
    ]
    if not lines:
        raise InputError(f"{path}: empty; the first line must name the columns, as in t,x,y")
    header = [name.strip() for name in next(csv.reader([lines[0][1]]))]
    _check_header(path, header)
    if len(lines) == 1:
        raise InputError(f"{path}: no rows; put numbers below the header {','.join(header)}")
    rows = _rows(path, header, lines[1:])
    columns = {name: np.ascontiguousarray(rows[:, j]) for j, name in enumerate(header)}
    return Table(path, columns, hashlib.sha256(raw).hexdigest())


def _rows(path: Path, header: list[str], lines: list[tuple[int, str]]) -> Array:
    """Numbers of all rows: numpy's fast reader, and a slow one that can say what is wrong and where."""
    try:
        rows = np.loadtxt([line for _, line in lines], delimiter=",", ndmin=2)
        if rows.shape == (len(lines), len(header)):
            return rows
    except ValueError:
        pass
    rows = np.empty((len(lines), len(header)))
    for k, (number, line) in enumerate(lines):
        fields = next(csv.reader([line]))
        if len(fields) != len(header):
            raise InputError(f"{path}: line {number} has {len(fields)} fields; the header has {len(header)}")
        rows[k] = [_number(path, number, name, field) for name, field in zip(header, fields, strict=True)]
    return rows


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path}: more than {LARGEST_FILE} bytes; store long series as HDF5")
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; paths are relative to the job file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _check_header(path: Path, header: list[str]) -> None:
    if len(header) == 1 and (other := next((sign for sign in (";", "\t") if sign in header[0]), "")):
        shown = "tabs" if other == "\t" else f"'{other}'"
        raise InputError(f"{path}: the columns are separated by {shown}; export it with commas")
    for j, name in enumerate(header):
        if not name:
            raise InputError(f"{path}: column {j + 1} has no name; the first line must name the columns")
        if name in header[:j]:
            raise InputError(f"{path}: two columns are called '{name}'; rename one")
    if all(_is_number(name) for name in header):
        raise InputError(
            f"{path}: the first line holds numbers; put a line with the names of the columns above it"
        )


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _number(path: Path, line: int, column: str, field: str) -> float:
    if not field.strip():
        return np.nan
    if not _is_number(field):
        place = f"line {line}, column {column}"
        raise InputError(f"{path}: {place}: '{field.strip()}' is not a number; leave missing values empty")
    return float(field)
