"""Results as a table in Markdown, which is also what the terminal shows, and as JSON."""

from __future__ import annotations

import argparse
import datetime
import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "scipy", "heyoka", "jitcode", "casadi", "hpcfit")
Row = Mapping[str, object]


def markdown(rows: Sequence[Row]) -> str:
    """A Markdown table; columns are the keys of the rows in order of appearance, numbers to the right."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    texts = [names, *([_text(row.get(name)) for name in names] for row in rows)]
    widths = [max(3, *(len(line[k]) for line in texts)) for k in range(len(names))]
    right = [any(isinstance(row.get(name), int | float) for row in rows) for name in names]
    lines = [
        " | ".join(
            cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, widths, right, strict=True)
        )
        for line in texts
    ]
    rule = " | ".join("-" * (w - 1) + (":" if r else "-") for w, r in zip(widths, right, strict=True))
    return "\n".join(f"| {line} |" for line in (lines[0], rule, *lines[1:]))


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return (
            f"{value:.1e}"
            if 0 < abs(value) < 1e-3
            else f"{value:.3g}"
            if abs(value) < 1000
            else f"{value:.0f}"
        )
    return str(value)


def machine() -> dict[str, Any]:
    """Date, CPU and versions: what a number means nothing without."""
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_model(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
    }


def cpu_model() -> str:
    """Name of the CPU, and the widest vectors that it has."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    known = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = known.get("flags", "").split()
    widest = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "no AVX2"
    family = f"family {known.get('cpu family', '?')} model {known.get('model', '?')}"
    return f"{known.get('model name', 'unknown')} ({family}, {widest})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a smoke run of some seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="store rows, date and CPU model")
    return parser


def publish(tables: Mapping[str, Sequence[Row]], notes: Sequence[str], file: Path | None) -> None:
    """Print the tables, each under its title; store them if a file is given."""
    found = machine()
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    print(f"\n{found['date']}, {found['cpu']}, {versions}")
    for title, rows in tables.items():
        print(f"\n{title}\n\n{markdown(rows)}")
    print("", *notes, sep="\n")
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({**found, "tables": tables, "notes": notes}, indent=1) + "\n")
