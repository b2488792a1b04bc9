"""h5py, serial or parallel, and the small conventions of all hpcfit files."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hpcfit.records import InputError

FORMAT = "hpcfit-result"
FORMAT_VERSION = 1
# The format of HDF5 1.10 has checksums of its own parts, and no limit to the length of attributes.
VERSIONS = ("v110", "v110")
_PARALLEL_SWITCHES = ("H5PY_ALWAYS_USE_MPI", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")


def serial_h5py() -> Any:
    """h5py, where there is a choice in its serial build, but on ranks in the parallel one.

    Debian's picks by these variables; a process has one or the other.
    """
    if "mpi4py.MPI" in sys.modules:
        import h5py

        return h5py
    hidden = {name: os.environ.pop(name) for name in _PARALLEL_SWITCHES if name in os.environ}
    try:
        import h5py
    finally:
        os.environ.update(hidden)
    return h5py


def parallel_h5py() -> Any:
    """h5py in its parallel build; None where there is none, or the serial one is in use already."""
    if "h5py" not in sys.modules:
        os.environ["H5PY_ALWAYS_USE_MPI"] = "1"
    import h5py

    return h5py if h5py.get_config().mpi else None


def can_share_files(comm: Any) -> bool:
    """Whether these ranks can have a file open together."""
    return comm.size > 1 and parallel_h5py() is not None


@contextmanager
def reading(path: Path) -> Iterator[Any]:
    """An open result file; anything that is not one is an InputError that says what it is."""
    h5py = serial_h5py()
    if not Path(path).exists():
        raise InputError(f"{path}: no such file; give the .h5 file that `hpcfit run` wrote")
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder; give the .h5 file that `hpcfit run` wrote")
    try:
        file = h5py.File(path, "r")
    except BlockingIOError:
        raise InputError(
            f"{path}: another process is writing this file; wait until it has finished"
        ) from None
    except OSError as error:
        broken = "signature" in str(error) or "truncated" in str(error)
        reason = "not an HDF5 file, or cut off" if broken else str(error)
        raise InputError(f"{path}: {reason}; give the .h5 file that `hpcfit run` wrote") from None
    with file:
        if file.attrs.get("format") != FORMAT:
            raise InputError(f"{path}: an HDF5 file, but not a result of hpcfit; it has no attribute format")
        if int(file.attrs["format_version"]) > FORMAT_VERSION:
            version = file.attrs["format_version"]
            raise InputError(f"{path}: format version {version} is newer than this hpcfit; upgrade hpcfit")
        try:
            yield file
        except InputError:
            raise
        except KeyError as error:
            raise InputError(
                f"{path}: damaged result, a part is missing ({error}); run the job again"
            ) from None
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(
                f"{path}: damaged result, a part is not readable ({error}); run the job again"
            ) from None


def put(
    group: Any,
    name: str,
    values: Any,
    *,
    dims: Sequence[str] = (),
    names: Sequence[str] = (),
    units: str | Sequence[str] = "",
    note: str = "",
) -> None:
    """A dataset with what a reader wants to know: axes, names of the columns, units."""
    array = np.asarray(values)
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8") if array.size else array.astype("S1")
    dataset = group.create_dataset(name, data=array, **_filters(array.size))
    _label(dataset, dims, names, units, note)


def reserve(
    group: Any,
    name: str,
    shape: tuple[int, ...],
    dtype: Any,
    *,
    rows: int,
    dims: Sequence[str] = (),
    names: Sequence[str] = (),
    units: str | Sequence[str] = "",
    note: str = "",
) -> Any:
    """A dataset like that of `put`, to be filled later by so many rows at a time."""
    chunks = (max(1, min(rows, shape[0])), *shape[1:])
    filters = _filters(math.prod(shape)) if shape[0] else {}
    dataset = group.create_dataset(name, shape, dtype, chunks=chunks if filters else None, **filters)
    _label(dataset, dims, names, units, note)
    return dataset


def _filters(size: int) -> dict[str, Any]:
    """A changed byte is found; what is not small is compressed."""
    if not size:
        return {}
    return {"fletcher32": True} | ({"compression": "gzip", "shuffle": True} if size > 1024 else {})


def _label(
    dataset: Any, dims: Sequence[str], names: Sequence[str], units: str | Sequence[str], note: str
) -> None:
    for axis, label in enumerate(dims):
        dataset.dims[axis].label = label
    if names:
        dataset.attrs["names"] = list(names)
    if units:
        dataset.attrs["units"] = units if isinstance(units, str) else list(units)
    if note:
        dataset.attrs["note"] = note


def names_of(dataset: Any) -> tuple[str, ...]:
    return tuple(str(name) for name in dataset.attrs.get("names", ()))


def texts(dataset: Any) -> list[str]:
    """The entries of an array of strings."""
    return [str(text) for text in dataset.asstr()[()]]


def columns(names: Sequence[str], units: Mapping[str, str]) -> dict[str, Any]:
    """What `put` tells of columns with these names; x@2 is the x of the second experiment."""
    own = [units.get(name, units.get(name.partition("@")[0], "1")) for name in names]
    return {"names": names, "units": own}


def put_attributes(group: Any, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        group.attrs[key] = value if value is not None else ""
