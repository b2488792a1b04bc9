"""Result files: what `run` writes and `show`, `report` and later studies read.

Layout: attributes format, kind, job_hash, ...; `job` (the text of the job file); `provenance` (attributes);
and the arrays of the record by their names, each with dims, names and units.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from hpcfit.files.ensembles import get_ensemble, put_ensemble
from hpcfit.files.fits import get_fit, put_fit
from hpcfit.files.hdf5 import FORMAT, FORMAT_VERSION, VERSIONS, put_attributes, reading, serial_h5py
from hpcfit.files.paths import get_path, put_path
from hpcfit.files.replacing import replacing, room_for
from hpcfit.files.rows import fill
from hpcfit.files.spectra import get_spectrum, put_spectrum
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import on_root
from hpcfit.records import EnsembleResult, FitResult, InputError, Path, Spectrum

ROWS = 1 << 16  # that are read at once
Record = Path | FitResult | EnsembleResult | Spectrum
_FORMS: dict[str, tuple[type, Callable[[Any, Any], None], Callable[[Any], Record]]] = {
    "simulate": (Path, put_path, get_path),
    "fit": (FitResult, put_fit, get_fit),
    "ensemble": (EnsembleResult, put_ensemble, get_ensemble),
    "lyapunov": (Spectrum, put_spectrum, get_spectrum),
}


@dataclass(frozen=True)
class Saved:
    """A result as it comes from its file."""

    record: Record
    kind: str
    job_text: str
    job_hash: str
    provenance: Mapping[str, Any]


def save(target: FilePath, saved: Saved, comm: Any = SERIAL) -> None:
    """Write a result; the file appears whole or not at all. Of a fit in parts each rank writes its own."""
    noun, put_record, _ = _FORMS[saved.kind]
    if not isinstance(saved.record, noun):
        raise TypeError(f"a result of kind '{saved.kind}' is a {noun.__name__}, not {type(saved.record)}")

    def put_all(part: FilePath) -> None:
        with _filling(part, saved.kind, saved.job_text, saved.job_hash) as file:
            put_provenance(file, saved.provenance)
            put_record(file, saved.record)

    with ExitStack() as stack:
        part = on_root(comm, lambda: stack.enter_context(replacing(target)))
        on_root(comm, lambda: put_all(part))
        if isinstance(saved.record, FitResult) and saved.record.extent is not None:
            fill(comm, part, saved.record)
        on_root(comm, lambda: _check_readable(part))
        on_root(comm, stack.close)


@contextmanager
def writing(
    target: FilePath,
    kind: str,
    job_text: str,
    job_hash: str,
    check: Callable[[Any], None] | None = None,
    size: int = 0,
) -> Iterator[Any]:
    """A result file to be filled; it takes the target's place when the block ends and it can be read.

    check: looks at the file that was read back, and raises what is wrong. size: bytes that it may need.
    """
    with replacing(target) as part:
        with open(part, "r+b") as empty:
            room_for(empty.fileno(), target, size)
        with _filling(part, kind, job_text, job_hash) as file:
            yield file
        _check_readable(part, check)


@contextmanager
def _filling(part: FilePath, kind: str, job_text: str, job_hash: str) -> Iterator[Any]:
    with serial_h5py().File(part, "w", libver=VERSIONS) as file:
        head = {"format": FORMAT, "format_version": FORMAT_VERSION, "kind": kind, "job_hash": job_hash}
        put_attributes(file, head)
        file["job"] = job_text
        yield file


def _check_readable(part: FilePath, check: Callable[[Any], None] | None = None) -> None:
    """What cannot be read back must not replace anything."""
    with reading(part) as file:
        file.visititems(_read_through)
        if check is not None:
            check(file)


def put_provenance(file: Any, provenance: Mapping[str, Any]) -> None:
    file.create_group("provenance").attrs["json"] = json.dumps(dict(provenance))


def _read_through(name: str, part: Any) -> None:
    """Every number once, some at a time: their checksums are looked at."""
    if hasattr(part, "shape"):
        for first in range(0, part.shape[0] if part.shape else 1, ROWS):
            part[first : first + ROWS] if part.shape else part[()]


def load(path: FilePath) -> Saved:
    """Read a result."""
    with reading(path) as file:
        kind = str(file.attrs["kind"])
        if kind not in _FORMS:
            raise InputError(
                f"{path}: a result of kind '{kind}', which this version cannot read; upgrade hpcfit"
            )
        _, _, get_record = _FORMS[kind]
        return Saved(
            record=get_record(file),
            kind=kind,
            job_text=file["job"].asstr()[()],
            job_hash=str(file.attrs["job_hash"]),
            provenance=json.loads(file["provenance"].attrs["json"]),
        )


def is_result(path: FilePath) -> bool:
    """Whether a file is hpcfit's own, be it damaged or of another version."""
    try:
        with reading(path):
            return True
    except InputError as error:
        return "format version" in str(error)
