"""Checkpoints: where a long computation stands, in two files that take turns.

The older of the two stays as it is while the newer one is written, each is whole or not there, and each has
a checksum of its numbers, so that there is always one to go on from.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hpcfit.files.hdf5 import put_attributes, serial_h5py
from hpcfit.files.replacing import replacing
from hpcfit.files.spectra import get_failures, put_failures
from hpcfit.records import Array, Bundle, Halt, InputError, Mistake

log = logging.getLogger(__name__)
FORMAT, FORMAT_VERSION = "hpcfit-checkpoint", 1
_OF_BUNDLE = ("states", "frames", "parameters")
_OF_HALT = ("logarithms", "divergence", "invariants", "steps")


@dataclass(frozen=True)
class Checkpoint:
    """A halt, and of which computation it is."""

    halt: Halt
    job_hash: str
    provenance: str  # what decides on the last bits: versions, CPU, machine code
    number: int  # of checkpoints so far


def paths(target: Path) -> tuple[Path, Path]:
    """The two checkpoints of a result file."""
    first, second = (target.with_name(f"{target.name}.checkpoint{k}") for k in (1, 2))
    return first, second


def keep(target: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint in place of the older one."""
    path = paths(target)[checkpoint.number % 2]
    arrays = dict(_arrays(checkpoint.halt))
    with replacing(path) as part, serial_h5py().File(part, "w", libver=("v110", "v110")) as file:
        for name, array in arrays.items():
            file[name] = array
        put_failures(file.create_group("failures"), checkpoint.halt.failures)
        head = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "job_hash": checkpoint.job_hash,
            "number": checkpoint.number,
            "provenance": checkpoint.provenance,
            "blocks": checkpoint.halt.bundle.blocks,
            "seconds": checkpoint.halt.seconds,
        }
        put_attributes(file, head | {"checksum": _checksum(arrays, head, checkpoint.halt)})
    return path


def newest(target: Path) -> Checkpoint | None:
    """The newest checkpoint that is not damaged; None if there is none; damaged ones are told."""
    found: list[Checkpoint] = []
    damaged: list[str] = []
    for path in paths(target):
        if path.exists():
            try:
                found.append(_read(path))
            except InputError:
                raise
            except (OSError, KeyError, ValueError, RuntimeError, TypeError) as error:
                damaged.append(f"{path} is damaged ({error})")
    best = max(found, key=lambda each: each.number, default=None)
    for each in damaged:
        instead = f"going on from block {best.halt.bundle.blocks:,}" if best else "beginning anew"
        log.warning("%s; %s", each, instead)
    return best


def forget(target: Path) -> None:
    """Remove both checkpoints, and what writers that were killed have left of them."""
    for path in paths(target):
        path.unlink(missing_ok=True)
        sweep(path)


def sweep(path: Path) -> None:
    """Remove what killed writers of a file have left."""
    for left in path.parent.glob(f".{path.name}.*.part"):
        left.unlink(missing_ok=True)


def _arrays(halt: Halt) -> Iterator[tuple[str, Array]]:
    for name in _OF_HALT:
        yield name, getattr(halt, name)
    for prefix, bundle in (("", halt.bundle), ("low_", halt.bundle.low)):
        for name in _OF_BUNDLE if bundle is not None else ():
            yield prefix + name, getattr(bundle, name)


def _checksum(arrays: dict[str, Any], head: dict[str, Any], halt: Halt) -> str:
    """Of all numbers, with their names and shapes, and of what is said about them."""
    told = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    told.update(str([str(failure) for failure in halt.failures]).encode())
    for name, array in sorted(arrays.items()):
        told.update(f"{name} {array.dtype.str} {array.shape}".encode())
        told.update(np.ascontiguousarray(array).tobytes())
    return told.hexdigest()


def _read(path: Path) -> Checkpoint:
    """A checkpoint, or a ValueError that says what is wrong with it."""
    with serial_h5py().File(path, "r") as file:
        if file.attrs.get("format") != FORMAT:
            raise ValueError("no checkpoint")
        if int(file.attrs["format_version"]) > FORMAT_VERSION:
            version = file.attrs["format_version"]
            raise InputError(
                Mistake(str(path), f"format version {version} is newer than this hpcfit", "upgrade hpcfit")
            )
        names = [name for name in file if name != "failures"]
        arrays = {name: file[name][()] for name in names}
        numbers = {"format_version": int, "number": int, "blocks": int, "seconds": float}
        words = {name: str(file.attrs[name]) for name in ("format", "job_hash", "provenance")}
        head = words | {name: kind(file.attrs[name]) for name, kind in numbers.items()}
        halt = Halt(
            bundle=_bundle(arrays, int(head["blocks"])),
            **{name: arrays[name] for name in _OF_HALT},
            failures=get_failures(file["failures"]),
            seconds=float(head["seconds"]),
        )
        if str(file.attrs["checksum"]) != _checksum(arrays, head, halt):
            raise ValueError("its checksum is wrong")
    return Checkpoint(halt, str(head["job_hash"]), str(head["provenance"]), int(head["number"]))


def _bundle(arrays: dict[str, Any], blocks: int) -> Bundle:
    quad = all(f"low_{name}" in arrays for name in _OF_BUNDLE)
    low = Bundle(blocks, **{name: arrays[f"low_{name}"] for name in _OF_BUNDLE}) if quad else None
    return Bundle(blocks, **{name: arrays[name] for name in _OF_BUNDLE}, low=low)
