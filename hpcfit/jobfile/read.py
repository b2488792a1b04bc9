"""From the text of a job file to a document, with the lines on which its keys stand."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcfit.records import InputError, Mistake

LARGEST_JOB = 1_000_000  # bytes


@dataclass(frozen=True)
class Document:
    """A job file as it stands on disk, and the values in it after --set."""

    path: Path
    text: str
    values: dict[str, Any]
    overrides: tuple[str, ...]
    copies: Mapping[str, Path] = field(default_factory=dict)  # of files that the job names, by these names

    def file(self, name: str) -> Path:
        """A file that the job names: relative to the job file, or its copy."""
        return self.copies.get(name) or self.path.parent / name

    def line(self, key: str) -> int:
        """The line of a key such as 'truth[2].noise.sd', or of the nearest key above it; 0 if nowhere."""
        parts = key.replace("[1]", "").split(".")
        while parts:
            if line := _line_of(self.text, parts):
                return line
            parts.pop()
        return _line_of(self.text, [key.partition("[")[0]]) if "[" in key else 0

    def place(self, key: str) -> str:
        """file:line of a key, or the option that set it."""
        plain = key.replace("[1]", "")
        if any(override.split("=")[0].strip().replace("[1]", "") == plain for override in self.overrides):
            return "--set"
        line = self.line(key)
        return f"{self.path}:{line}" if line else str(self.path)


def read_document(
    path: Path, overrides: Sequence[str] = (), copies: Mapping[str, Path] | None = None
) -> Document:
    """Read a TOML job file and apply `table.key=value` overrides."""
    try:
        if path.stat().st_size > LARGEST_JOB:
            raise InputError(Mistake(str(path), "larger than 1 MB", "give a job file in TOML"))
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(Mistake(str(path), "no such file", "give the path of a job file (.toml)")) from None
    except IsADirectoryError:
        raise InputError(Mistake(str(path), "is a folder", "give the path of a job file (.toml)")) from None
    except UnicodeDecodeError:
        raise InputError(Mistake(str(path), "not UTF-8 text", "give a job file in TOML")) from None
    except OSError as error:
        raise InputError(
            Mistake(str(path), f"cannot be read: {error.strerror}", "check its permissions")
        ) from None
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(
            Mistake(str(path), f"not valid TOML: {error}", "texts need quotes, tables [brackets]")
        ) from None
    for override in overrides:
        _apply(values, override)
    return Document(path, text, values, tuple(overrides), copies or {})


def _apply(values: dict[str, Any], override: str) -> None:
    """Set one value: the right-hand side is TOML, or else a text."""
    key, equals, source = override.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise InputError(
            Mistake("--set", f"'{override}' is not KEY=VALUE", "as in --set simulate.tolerance=1e-10")
        )
    try:
        value = tomllib.loads(f"value = {source}")["value"]
    except tomllib.TOMLDecodeError:
        value = source
    assign(values, ".".join(parts), value)


def assign(values: dict[str, Any], key: str, value: Any, place: str = "--set") -> None:
    """Set the value of a dotted key such as truth[2].noise.sd; messages name the place that asks for it."""
    *tables, last = key.split(".")
    table = values
    for part in tables:
        table = _inner(table, part, key, place)
    table[last] = value


def _inner(table: dict[str, Any], part: str, key: str, place: str) -> dict[str, Any]:
    """The table below, which is made if it is not there; name[2] is the second of an array of tables."""
    numbered = re.fullmatch(r"(.*)\[(\d+)\]", part)
    name, number = (numbered[1], int(numbered[2])) if numbered else (part, 0)
    found = table.get(name, []) if numbered else table.setdefault(name, {})
    if numbered or isinstance(found, list):
        several = found if isinstance(found, list) else [found]
        if not 1 <= number <= len(several):
            problem = f"'{key}': the job has {len(several)} [[{name}]]"
            remedy = f"number them from {name}[1]" if several else "write it into the job"
            raise InputError(Mistake(place, problem, remedy))
        found = several[number - 1]
    if not isinstance(found, dict):
        problem = f"'{part}' in '{key}' is a value, not a table"
        raise InputError(Mistake(place, problem, "shorten the key"))
    return found


def _line_of(text: str, parts: list[str]) -> int:
    """The line of [table], [[table]] or key; 0 if it does not stand at the beginning of a line.

    The second [[table]] is table[2]; the first has no number.
    """
    table: list[str] = []
    count: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*(\[\[?)\s*([\w.-]+)\s*\]", line):
            name, *inner = header[2].split(".")
            if header[1] == "[[" and not inner:
                count[name] = count.get(name, 0) + 1
            table = [name if count.get(name, 1) == 1 else f"{name}[{count[name]}]", *inner]
            if table == parts:
                return number
            continue
        assignment = re.match(r"""\s*(["']?)([\w.-]+)\1\s*=""", line)
        if assignment and table + assignment[2].split(".") == parts:
            return number
    return 0
