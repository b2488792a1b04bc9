"""How members ended, without reading anything else of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from hpcfit.files.hdf5 import serial_h5py
from hpcfit.records import Outcome


def failed_members(files: Iterable[Path]) -> dict[str, int]:
    """Members without success in results, tasks or parts, by reason; what cannot be read is left out."""
    h5py = serial_h5py()
    counts: Counter[str] = Counter()
    for path in files:
        try:
            with h5py.File(path, "r") as file:
                dataset = file["outcomes"]
                names = {code: name for name, code in h5py.check_enum_dtype(dataset.dtype).items()}
                codes, found = np.unique(dataset[()], return_counts=True)
        except (OSError, KeyError):
            continue
        for code, members in zip(codes.tolist(), found.tolist(), strict=True):
            counts[names[code]] += members
    counts.pop(Outcome.CONVERGED.name, None)
    return {Outcome[name].value: members for name, members in counts.items()}
