"""The tables of a document read by the schema, with every mistake on the way."""

from __future__ import annotations

from typing import Any

from hpcfit.jobfile.arrays import inherited, shown, stored
from hpcfit.jobfile.read import Document
from hpcfit.jobfile.schema import ALLOWED_TABLES, ARRAYS, KINDS, REQUIRED_TABLES, SCHEMA, Key
from hpcfit.jobfile.values import split_remedy
from hpcfit.models.names import nearest
from hpcfit.records import InputError, Mistake


class Checker:
    """Collects mistakes of one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.mistakes: list[Mistake] = []

    def wrong(self, key: str, problem: str, remedy: str = "", value: Any = None) -> None:
        self.mistakes.append(Mistake(self.document.place(key), problem, remedy, key, value))

    def is_wrong(self, key: str) -> bool:
        """True if this key, or one inside it, has a mistake already."""
        return any(mistake.key == key or mistake.key.startswith(f"{key}.") for mistake in self.mistakes)

    def read_key(self, full: str, key: Key, value: Any) -> Any:
        try:
            return key.read(value)
        except InputError as error:
            for mistake in error.mistakes:
                problem, remedy = split_remedy(mistake.problem)
                name = f"{full}.{mistake.key}" if mistake.key else full
                shown = mistake.value if mistake.key else value
                self.wrong(name, problem, mistake.remedy or remedy or f"expected: {key.meaning}", shown)
            return key.default

    def read_table(self, table: str, given: Any, label: str = "", *, complete: bool = True) -> dict[str, Any]:
        """Every key of a table, which messages call by its label; not the first of many may be incomplete."""
        keys, label = SCHEMA[table], label or table
        if not isinstance(given, dict):
            self.wrong(label, "must be a table", f"write [{table}] and its keys below it", given)
            given = {}
        free = keys.get("*")
        result = {name: key.default for name, key in keys.items() if name != "*"}
        for name, value in given.items():
            full = f"{label}.{name}" if table else name
            if name in keys or free:
                result[name] = self.read_key(full, keys.get(name) or free, value)  # type: ignore[arg-type]
            else:
                elsewhere = [other for other, others in SCHEMA.items() if other != table and name in others]
                remedy = (
                    f"it belongs to [{elsewhere[0]}]" if elsewhere and elsewhere[0] else nearest(name, keys)
                )
                self.wrong(full, "unknown key", remedy, value if not isinstance(value, dict) else None)
        for name, key in keys.items():
            if key.required and complete and name not in given:
                self.wrong(f"{label}.{name}" if table else name, "is missing", key.meaning)
        return result

    def read_array(self, table: str, given: list[Any]) -> dict[str, dict[str, Any]]:
        """Tables of experiments by the keys under which a job keeps them."""
        if not given:
            self.wrong(table, "is empty", f"write [[{table}]] for each experiment, or [{table}]", given)
            return {}
        first = self.read_table(table, given[0], shown(table, 0, len(given)))
        result = {table: first}
        for k, entry in enumerate(given[1:], 1):
            own = self.read_table(table, entry, shown(table, k, len(given)), complete=False)
            result[stored(table, k)] = inherited(first, own, entry if isinstance(entry, dict) else {})
        return result

    def read_tables(self) -> tuple[str, dict[str, dict[str, Any]]]:
        given = self.document.values
        top = {key: value for key, value in given.items() if key not in SCHEMA or key == ""}
        stray = [key for key, value in top.items() if isinstance(value, dict)]
        for key in stray:
            self.wrong(key, "unknown table", nearest(key, [name for name in SCHEMA if name]))
            del top[key]
        tables = {"": self.read_table("", top)}
        kind = tables[""]["kind"] if tables[""]["kind"] in KINDS else "simulate"
        known_kind = tables[""]["kind"] in KINDS
        for table in (name for name in SCHEMA if name):
            if table in given and known_kind and table not in ALLOWED_TABLES[kind]:
                self.wrong(table, f"this table has no meaning in a job of kind '{kind}'", "remove it")
            elif table in ARRAYS and isinstance(given.get(table), list):
                tables |= self.read_array(table, given[table])
            elif table in given:
                tables[table] = self.read_table(table, given[table])
            elif table in REQUIRED_TABLES[kind] and known_kind:
                self.wrong(table, "this table is missing", f"a job of kind '{kind}' needs [{table}]")
            elif not any(key.required for key in SCHEMA[table].values()):
                tables[table] = self.read_table(table, {})
        return kind, tables
