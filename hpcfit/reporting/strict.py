"""Values in the types of JSON and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np


def strict(value: object) -> object:
    """The same in the types of JSON; what is not finite is null."""
    if isinstance(value, Mapping):
        return {str(key): strict(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return strict(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [strict(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    return str(value)


def strict_page(page: Mapping[str, object]) -> dict[str, object]:
    """A whole page of JSON."""
    return {key: strict(entry) for key, entry in page.items()}


def csv_page(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lines of CSV; numbers read back to the same doubles, missing ones are empty."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_field(value) for value in row] for row in rows)
    return page.getvalue()


def _field(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)
