"""How members ended, without reading anything else of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from hpcfit.files.hdf5 import reading, serial_h5py
from hpcfit.records import Outcome

SUCCESSES = (Outcome.CONVERGED, Outcome.DONE)


def failed_members(files: Iterable[Path]) -> dict[str, int]:
    """Members without success in results, tasks or parts, by reason; what cannot be read is left out."""
    h5py = serial_h5py()
    counts: Counter[str] = Counter()
    for path in files:
        try:
            with h5py.File(path, "r") as file:
                counts.update(_counted(h5py, file))
        except (OSError, RuntimeError, KeyError, ValueError):
            continue
    for success in SUCCESSES:
        counts.pop(success.name, None)
    known = Outcome.__members__
    return {known[name].value if name in known else name: members for name, members in counts.items()}


def numbers_of_failed(result: Path) -> tuple[int, ...]:
    """The members of a result that ended without success."""
    with reading(result) as file:
        names = serial_h5py().check_enum_dtype(file["outcomes"].dtype)
        well = [names[outcome.name] for outcome in SUCCESSES if outcome.name in names]
        failed = ~np.isin(file["outcomes"][()], well)
        return tuple(file["members"][()][failed].tolist())


def _counted(h5py: Any, file: Any) -> dict[str, int]:
    """Members by how they ended: joined files tell, of parts the members are counted."""
    if "ended" in file.attrs:
        return dict(json.loads(file.attrs["ended"]))
    dataset = file["outcomes"]
    names = {code: name for name, code in h5py.check_enum_dtype(dataset.dtype).items()}
    codes, members = np.unique(dataset[()], return_counts=True)
    return {names[code]: count for code, count in zip(codes.tolist(), members.tolist(), strict=True)}
