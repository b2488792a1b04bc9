"""The rooms of the house and who may enter which: imports point one way."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "hpcfit"
EVERYBODY = {"records", "mpi"}
MAY_IMPORT = {
    "records": set(),
    "mpi": set(),
    "models": set(),
    "math": {"models"},
    "kernels": {"models"},
    "flow": {"models", "kernels"},
    "linear": {"kernels"},
    "shooting": {"models", "kernels", "flow", "linear"},
    "leastsq": {"linear"},
    "lyapunov": {"models", "kernels", "flow"},
    "ensemble": {"models"},
    "files": set(),
    "cluster": set(),
    "reporting": set(),
    "jobfile": {"models", "flow", "ensemble", "leastsq", "linear"},
    "studies": {"models", "kernels", "flow", "linear", "shooting", "leastsq", "lyapunov", "ensemble"},
    "commands": {"models", "kernels", "ensemble", "jobfile", "studies", "files", "cluster", "reporting"},
    "__init__": {"models", "shooting", "studies", "math"},
    "__main__": {"commands"},
}
ONLY_IN = {
    "mpi4py": {"mpi"},
    "petsc4py": {"linear"},
    "h5py": {"files"},
    "matplotlib": {"reporting"},
    "subprocess": {"kernels", "cluster"},
}
INNER = {"hpcfit.math": {"models"}}  # the catalogue writes its equations as users do


def imports() -> list[tuple[str, str, str]]:
    """(file, room, imported module) of every import statement in the package."""
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        room = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found += [(str(file), room, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file}: relative import"
                names = [f"hpcfit.{a.name}" for a in node.names] if node.module == "hpcfit" else [node.module]
                found += [(str(file), room, name) for name in names]
    return found


def test_imports_between_rooms_point_one_way() -> None:
    for file, room, module in imports():
        if module.startswith("hpcfit.") and room not in INNER.get(module, set()):
            target = module.split(".")[1]
            allowed = MAY_IMPORT[room] | EVERYBODY | {room}
            assert target in allowed, f"{file} imports {module}: {room} may use {sorted(allowed)}"


def test_foreign_libraries_live_in_one_room_each() -> None:
    for file, room, module in imports():
        top = module.split(".")[0]
        assert room in ONLY_IN.get(top, {room}), f"{file} imports {module}, which belongs to {ONLY_IN[top]}"


def test_only_the_command_line_sets_up_logging_and_asks_for_the_world() -> None:
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text()
        assert "basicConfig" not in text or file.name == "__main__.py", file
        assert "world()" not in text or file.name in ("__main__.py", "world.py"), file
