"""Models in Python files of the user: read without running them, or run to get the model."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from hpcfit.models.define import Model
from hpcfit.models.names import nearest
from hpcfit.records import InputError


@dataclass(frozen=True)
class Declaration:
    """What the source of a model says about it; None where it is computed rather than written."""

    name: str
    states: tuple[str, ...] | None
    parameters: tuple[str, ...] | None
    observables: tuple[str, ...] | None


def declarations(path: Path) -> list[Declaration]:
    """The functions decorated with @model(...) in a file, found without running it."""
    try:
        tree = ast.parse(path.read_bytes())  # bytes: Python itself knows about encodings
    except OSError as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read: {reason}; paths are relative to the job file") from None
    except (MemoryError, RecursionError):
        raise InputError(f"{path}: nested too deep to be read") from None
    except (SyntaxError, ValueError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        raise InputError(f"{path}: not Python{line}; {getattr(error, 'msg', error)}") from None
    return list(_declared(tree))


def _declared(tree: ast.Module) -> Iterator[Declaration]:
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef):
            continue
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).split(".")[-1] == "model":
                words = {keyword.arg: keyword.value for keyword in decorator.keywords}
                yield Declaration(
                    name=_written_name(words.get("name")) or function.name,
                    states=_written_names(words.get("states")),
                    parameters=_written_names(words["parameters"]) if "parameters" in words else (),
                    observables=_written_keys(words.get("observables")),
                )


def _written_name(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _written_names(node: ast.expr | None) -> tuple[str, ...] | None:
    match node:
        case ast.Constant(value=str() as names):
            return tuple(names.replace(",", " ").split())
        case ast.List(elts=items) | ast.Tuple(elts=items):
            written = [
                item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)
            ]
            return tuple(written) if len(written) == len(items) else None
    return None


def _written_keys(node: ast.expr | None) -> tuple[str, ...] | None:
    if node is None:
        return ()
    return (
        _written_names(ast.List(elts=[key for key in node.keys if key]))
        if isinstance(node, ast.Dict)
        else None
    )


def choose(path: Path, name: str | None, known: list[str]) -> str:
    """Which model of a file is meant: the named one, or the only one."""
    if not known:
        raise InputError(f'{path}: no model in this file; decorate a function with @model(states="...")')
    if name is None:
        if len(known) > 1:
            raise InputError(
                f"{path}: {len(known)} models in this file; choose one by name: {' '.join(known)}"
            )
        return known[0]
    if name not in known:
        raise InputError(f"{path}: no model '{name}' in this file; {nearest(name, known)}")
    return name


def load(path: Path, name: str | None = None) -> Model:
    """Run a Python file and return its model: the user's own code, with the user's rights."""
    if path.suffix != ".py" or not path.is_file():
        raise InputError(f"{path}: not a Python file; it must exist and end in .py")
    written = [declaration.name for declaration in declarations(path)]
    found = {value.name: value for value in _run(path).values() if isinstance(value, Model)}
    own = [key for key in found if key in written]  # imported models are not what a file is about
    return found[choose(path, name, own if own and name is None else list(found))]


def _run(path: Path) -> dict[str, Any]:
    """What a file defines; compiled afresh, as Python's cache overlooks edits within one second."""
    module = ModuleType(f"hpcfit_model_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and pickle look their module up
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (Exception, SystemExit) as error:
        raise InputError(f"{path}: running it failed; {type(error).__name__}: {error}") from error
    return vars(module)
