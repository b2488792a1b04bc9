"""Arrays of tables, [[truth]] and [[data]]: one table for each experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Table = Mapping[str, Any]


def shown(name: str, number: int, count: int) -> str:
    """How messages call one of several tables: data[2]; one alone is data."""
    return name if count == 1 else f"{name}[{number + 1}]"


def stored(name: str, number: int) -> str:
    """The key under which a job keeps one of several tables: the first has no number."""
    return name if number == 0 else f"{name}[{number + 1}]"


def several(tables: Mapping[str, Table], name: str) -> list[tuple[str, Table]]:
    """All tables of this name as they were read, each with what messages call it."""
    found: list[Table] = []
    while (key := stored(name, len(found))) in tables:
        found.append(tables[key])
    return [(shown(name, k, len(found)), table) for k, table in enumerate(found)]


def written(values: Mapping[str, Any], name: str) -> list[tuple[str, Table]]:
    """All tables of this name as they stand in the document; what is no table counts as an empty one."""
    given = values.get(name, [])
    entries = given if isinstance(given, list) else [given]
    tables = [each if isinstance(each, dict) else {} for each in entries]
    return [(shown(name, k, len(tables)), table) for k, table in enumerate(tables)]


def inherited(first: Table, own: Table, given: Table) -> dict[str, Any]:
    """A later table: what it leaves out is as in the first, parameters one by one."""
    result = {name: own[name] if name in given else value for name, value in first.items()}
    if isinstance(first.get("parameters"), Mapping) and isinstance(own.get("parameters"), Mapping):
        result["parameters"] = {**first["parameters"], **own["parameters"]}
    return result
