"""Holds the packages to the table of docs/architecture.md, and the readers to doing without TensorFlow."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tb_gradflow
from tests.serve.processes import environment
from tests.store.samples import write_log

PACKAGE = Path(tb_gradflow.__file__).parent

ANYONE = {"errors", "plain", "version"}

# Part of the package -> other parts it may import, and packages of others.
TABLE: dict[str, tuple[set[str], set[str]]] = {
    "errors": (set(), set()),
    "plain": (set(), set()),
    "version": (set(), set()),
    "record": (set(), set()),
    "analyse": ({"record"}, {"numpy"}),
    "gradcheck": (set(), {"numpy"}),
    "trace": ({"record", "analyse", "gradcheck", "store"}, {"numpy", "tensorflow", "keras", "tf_keras"}),
    "store": ({"record"}, {"google_crc32c", "tensorboard", "google"}),
    "serve": ({"record", "analyse", "store"}, {"google_crc32c", "numpy", "tensorboard", "werkzeug"}),
    # `explain` and `check_gradients` load the recorder, when they are called.
    "api": ({"record", "analyse", "gradcheck", "serve", "store", "trace"}, {"numpy"}),
    # Loads the recorder, when it is called.
    "summary": ({"trace"}, set()),
    "cli": ({"api", "demo", "record", "run_options", "serve", "startup", "store"}, {"anyio", "mcp"}),
    "__main__": ({"cli"}, set()),
    # Loads the reports, for a command that is given each finding.
    "startup": ({"record", "recorded", "serve", "tracebacks"}, set()),
    # Loads the recorder, when what is recorded has imported TensorFlow.
    "recorded": ({"on_import", "trace"}, set()),
    "run_options": (set(), set()),
    "tracebacks": (set(), set()),
    "on_import": (set(), set()),
    "notebook": ({"api", "recorded", "run_options", "serve", "store"}, {"IPython"}),
    # A demonstration is a user's program: it imports the package itself.
    "demo": ({"__init__", "api", "record", "trace"}, {"numpy", "tensorflow", "keras"}),
    # Loads the recorder, when a test asks for it. `serve` and `trace` are named for their types alone.
    "pytest_plugin": ({"__init__", "recorded", "serve", "trace"}, {"pytest"}),
    "__init__": ({"api", "notebook", "summary", "trace"}, set()),
}

# Rooms of a folder, lowest first: a room may import itself and those before it. What lies beside the rooms may import
# all of them, and no room imports that, but for what is named in `BENEATH`.
ROOMS: dict[str, tuple[str, ...]] = {
    "trace": (
        "protection",
        "tf_internals",
        "source",
        "engine",
        "numerics",
        "graph",
        "fidelity",
        "terms",
        "capture",
        "custom_gradient_checks",
        "eager",
        "experiments",
        "step",
        "nonfinite",
        "observed",
        "log",
        "fit",
        "explain",
        "graph_v1",
        "sessions",
        "program",
    ),
    "analyse": (
        "graph",
        "over_time",
        "step",
        "evidence",
        "words",
        "user_code",
        "edits",
        "causes",
        "experiments",
        "report",
        "divergence",
    ),
    "gradcheck": ("verdicts",),
    "serve": ("runs", "terminal", "reports", "formats"),
    "analyse/causes": (
        "no_derivative",
        "left_graph",
        "tape",
        "unused",
        "flat",
        "exact_zero",
        "cancelling",
        "not_finite",
        "strength",
        "wrong_value",
        "updates",
        "loss_terms",
    ),
}

# Modules beside rooms that these are made of.
BENEATH = {
    "analyse/causes": {"cause"},
    "gradcheck": {"comparison", "differences", "probes", "problem", "report"},
}

# A room that lies above what is beside the rooms, and may import it: nobody imports it in turn.
ABOVE = {"trace": "program"}

# A folder holds what a reader can keep in mind at once.
MOST_MODULES = 15


def imports_of(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            assert node.module is not None
            # `from tb_gradflow import errors` imports a part as well.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_only_what_its_package_may(path: Path) -> None:
    part = part_of(path)
    parts, foreign = TABLE[part]

    for name in imports_of(path):
        top, _, rest = name.partition(".")
        if top == "tb_gradflow":
            assert (rest.partition(".")[0] or "__init__") in {part, *parts, *ANYONE}, f"imports {name}"
        else:
            assert top in sys.stdlib_module_names | foreign, f"imports {name}"


def test_the_table_names_every_part() -> None:
    assert {part_of(path) for path in MODULES} <= set(TABLE)


def rooms_around(path: Path) -> Iterator[tuple[str, str]]:
    """Each folder with rooms that a module lies in, with the room that it is in."""
    parts = path.relative_to(PACKAGE).parts
    for depth in range(1, len(parts) - 1):
        folder = "/".join(parts[:depth])
        if folder in ROOMS:
            yield folder, parts[depth]


@pytest.mark.parametrize(
    ("path", "folder", "room"),
    [
        pytest.param(path, folder, room, id=f"{path.relative_to(PACKAGE).as_posix()} in {folder}")
        for path in MODULES
        for folder, room in rooms_around(path)
    ],
)
def test_a_module_imports_only_rooms_that_lie_below_its_own(path: Path, folder: str, room: str) -> None:
    rooms, inside = ROOMS[folder], f"tb_gradflow.{folder.replace('/', '.')}."
    below = {*rooms[: rooms.index(room) + 1], *BENEATH.get(folder, ())}
    if room == ABOVE.get(folder):
        below |= {each.stem for each in (PACKAGE / folder).glob("*.py")}

    for name in imports_of(path):
        if name.startswith(inside):
            assert name.removeprefix(inside).partition(".")[0] in below, f"imports {name}"


@pytest.mark.parametrize(("folder", "room"), ABOVE.items())
def test_no_module_beside_the_rooms_imports_the_room_above_them(folder: str, room: str) -> None:
    for path in (PACKAGE / folder).glob("*.py"):
        assert not any(name.startswith(f"tb_gradflow.{folder}.{room}") for name in imports_of(path))


@pytest.mark.parametrize("package", ROOMS)
def test_the_table_names_every_room(package: str) -> None:
    assert sorted(ROOMS[package]) == sorted(path.parent.name for path in (PACKAGE / package).glob("*/__init__.py"))


@pytest.mark.parametrize("room", [f"{package}/{room}" for package, rooms in ROOMS.items() for room in ("", *rooms)])
def test_a_room_has_one_job_that_it_tells_and_no_more_modules_than_one_can_keep_in_mind(room: str) -> None:
    modules = sorted((PACKAGE / room).glob("*.py"))
    opening = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))) or ""

    assert len(opening) > 20, "the job is missing"
    assert opening.splitlines()[0].endswith((".", ":")), "the first line is no sentence"
    assert len(modules) - 1 <= MOST_MODULES


def test_the_page_on_the_architecture_lists_the_rooms_in_their_order() -> None:
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")

    for package, rooms in ROOMS.items():
        table = page.partition(f"## Inside `{package}/`")[2].partition("\n## ")[0]
        rows = [row.split(" | ") for row in table.splitlines() if row.startswith("| `")]
        assert [row[0] for row in rows] == [f"| `{room}/`" for room in rooms]
        for room, (_, _, first) in zip(rooms, rows, strict=True):
            for name in first.removesuffix(" |").replace("`", "").split(", "):
                assert (PACKAGE / package / room / f"{name}.py").is_file(), f"{room} has no {name}"


@pytest.mark.parametrize(
    "name", sorted({"tb_gradflow", "tb_gradflow.record.schema", "tb_gradflow.record.codec", "tb_gradflow.errors"})
)
def test_the_package_and_its_records_load_nothing_else(name: str) -> None:
    """TensorBoard imports the package at its start, and must not pay for what it may never use."""
    run_python(
        f"import {name}, sys; loaded = {{'tensorflow', 'keras', 'tensorboard', 'numpy'}} & set(sys.modules); "
        "assert not loaded, loaded"
    )


@pytest.mark.parametrize("name", ["tb_gradflow.serve.plugin", "tb_gradflow.cli.main", "tb_gradflow.api"])
def test_readers_never_load_tensorflow_though_it_is_installed(name: str) -> None:
    run_python(f"import {name}, sys; assert 'tensorflow' not in sys.modules", tensorflow=True)


def test_the_entry_point_loads_only_tensorboard() -> None:
    run_python("import tb_gradflow.serve.loader, sys; assert 'numpy' not in sys.modules")


def test_a_log_is_written_and_read_without_tensorflow(tmp_path: Path) -> None:
    write_log(tmp_path)

    said = run_python(f"import tb_gradflow; print(tb_gradflow.open_log({str(tmp_path)!r}).report())")

    assert "nondiff_comparison" in said


@pytest.mark.parametrize("name", ["GradFlowCallback", "explain"])
def test_recording_without_tensorflow_says_what_to_install(name: str) -> None:
    said = run_python(f"import tb_gradflow\ntry: tb_gradflow.{name}\nexcept ImportError as error: print(error)")

    assert said.startswith(f"{name} needs TensorFlow, and ")
    assert "pip install tensorflow" in said


def test_the_package_has_exactly_its_public_names() -> None:
    assert (
        dir(tb_gradflow)
        == sorted(tb_gradflow.__all__)
        == ["GradFlowCallback", "check_gradients", "compare", "explain", "open_log", "summary", "watch"]
    )
    for name in tb_gradflow.__all__:
        assert callable(getattr(tb_gradflow, name)) or name == "summary"
    assert callable(tb_gradflow.summary.gradients)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = tb_gradflow.nonsense


def run_python(code: str, tensorflow: bool = False) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tensorflow), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
