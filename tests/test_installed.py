"""The package as a user gets it: built in a clean place, installed where there is nothing but what it asks for."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tb_gradflow.version import VERSION
from tests.serve.processes import address_of, ask_at
from tests.store.samples import write_log

REPOSITORY = Path(__file__).parents[1]
NOT_IN_A_CLEAN_PLACE = shutil.ignore_patterns(
    ".*", "build", "dist", "static", "node_modules", "__pycache__", "tests", "shared", "logs"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """`wheel` and `sdist` of a copy of the checkout, and `rebuilt`: a wheel of that sdist, made without Node."""
    place = tmp_path_factory.mktemp("built")
    checkout = place / "checkout"
    shutil.copytree(REPOSITORY, checkout, ignore=NOT_IN_A_CLEAN_PLACE)
    (checkout / "frontend" / "node_modules").symlink_to(REPOSITORY / "frontend" / "node_modules")
    build(checkout, place / "dist", os.environ["PATH"])
    [sdist] = (place / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(place / "unpacked", filter="data")
    [source] = (place / "unpacked").iterdir()
    build(source, place / "again", str(place), "--wheel")
    return {
        "sdist": sdist,
        "wheel": next((place / "dist").glob("*.whl")),
        "rebuilt": next((place / "again").glob("*.whl")),
    }


def build(source: Path, out: Path, path: str, *kinds: str) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), *kinds, str(source)]
    done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_the_page_and_the_types_and_no_sources_of_the_page(built: dict[str, Path]) -> None:
    names = names_in(built["wheel"])

    assert "tb_gradflow/serve/static/causes/dead_relu.html" in names
    assert {"tb_gradflow/serve/static/index.js", "tb_gradflow/py.typed", "tb_gradflow/demo/step_filter.py"} <= names
    assert not [name for name in names if name.startswith(("tests/", "frontend/", "benchmarks/"))]


def test_the_wheel_says_where_pytest_finds_its_fixture(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as wheel:
        [name] = [each for each in wheel.namelist() if each.endswith("entry_points.txt")]
        points = wheel.read(name).decode()

    assert "[pytest11]\ngradflow = tb_gradflow.pytest_plugin\n" in points


def test_the_sdist_needs_no_node_and_makes_the_same_wheel(built: dict[str, Path]) -> None:
    assert names_in(built["rebuilt"]) == names_in(built["wheel"])


@pytest.fixture(scope="module", params=["", "tensorflow-cpu"], ids=["without_tensorflow", "with_tensorflow"])
def python(request: pytest.FixtureRequest, built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment with the wheel, the packages that its metadata asks for, those that these ask for, and no
    others. They are linked from the one that runs the tests, which spares a download."""
    program, site = empty_environment(built["wheel"], tmp_path_factory.mktemp("environment"))
    for name in required("tensorboard-plugin-gradflow", request.param):
        link(name, site)
    return program


def empty_environment(wheel: Path, home: Path) -> tuple[Path, Path]:
    """The Python of an environment with the wheel alone, and where its packages are."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    [site] = home.glob("lib/python*/site-packages")
    program = home / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(program), *install], check=True)
    return program, site


def required(name: str, extra: str) -> set[str]:
    """The distributions that one needs, and that those need, and so on."""
    found: set[str] = set()
    left = [(name, extra)]
    while left:
        of, wanted = left.pop()
        for text in importlib.metadata.requires(of) or ():
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": wanted}):
                continue
            if requirement.name not in found:
                found.add(requirement.name)
                left += [(requirement.name, each) for each in ("", *requirement.extras)]
    return found


def link(name: str, site: Path) -> None:
    distribution = importlib.metadata.distribution(name)
    for top in {Path(file).parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(distribution.locate_file(top))))


@pytest.fixture(scope="module")
def python_without_tensorboard(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, where TensorBoard is missing, and with it what only TensorBoard asks for."""
    program, site = empty_environment(built["wheel"], tmp_path_factory.mktemp("environment"))
    [info] = site.glob("tensorboard_plugin_gradflow-*.dist-info")
    asked = [Requirement(text) for text in importlib.metadata.Distribution.at(info).requires or ()]
    for name in {each.name for each in asked if each.marker is None} - {"tensorboard"}:
        for needed in {name, *required(name, "")}:
            link(needed, site)
    return program


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_log(tmp_path / "logs" / "run")
    return tmp_path / "logs"


def run(python: Path, *arguments: str) -> str:
    # Not here, where Python would find the checkout first.
    elsewhere = python.parents[1]
    done = subprocess.run([str(python), *arguments], cwd=elsewhere, env=clean(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def clean() -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def test_the_command_reads_a_log(python: Path, log: Path, tmp_path: Path) -> None:
    command = str(python.with_name("tb-gradflow"))

    assert run(python, command, "--version") == f"tb-gradflow {VERSION}\n"
    assert list(json.loads(run(python, command, "report", str(log), "--json"))["runs"]) == ["run"]
    run(python, command, "report", str(log), "--html", str(tmp_path / "page.html"))
    assert "gradflow-data" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_tab_is_there(python: Path, log: Path) -> None:
    command = [str(python), "-m", "tensorboard.main", "--port=0", f"--logdir={log}"]
    process = subprocess.Popen(
        command, cwd=log, env=clean(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        url = address_of(process)
        listed = ask_at(url, "data/plugins_listing").json["gradflow"]
        page = ask_at(url, "data/plugin/gradflow/static/index.js")
    finally:
        process.terminate()
        process.communicate(timeout=30)

    assert listed["tab_name"] == "Gradient flow"
    assert (page.status, page.headers["Content-Type"].partition(";")[0]) == (200, "text/javascript")


def test_without_tensorboard_logs_are_read_and_shown(python_without_tensorboard: Path, log: Path) -> None:
    python, command = python_without_tensorboard, str(python_without_tensorboard.with_name("tb-gradflow"))
    assert run(python, "-c", "import importlib.util as u; print(u.find_spec('tensorboard'))") == "None\n"

    report = json.loads(run(python, command, "report", str(log), "--json"))
    viewer = subprocess.Popen(
        [str(python), command, "view", str(log)], cwd=log, env=clean(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert viewer.stdout is not None
        url = viewer.stdout.readline().split()[1]
        runs = ask_at(url, "data/plugin/gradflow/runs").json["runs"]
        page = ask_at(url, "data/plugin/gradflow/static/index.js")
    finally:
        viewer.terminate()
        viewer.communicate(timeout=30)

    assert list(report["runs"]) == ["run"]
    assert [each["name"] for each in runs] == ["run"]
    assert (page.status, page.headers["Content-Type"].partition(";")[0]) == (200, "text/javascript")


def test_what_needs_tensorflow_works_or_says_what_to_install(python: Path, tmp_path: Path) -> None:
    has_tensorflow = run(python, "-c", "import importlib.util as u; print(u.find_spec('tensorflow') is not None)")
    program = tmp_path / "program.py"
    program.write_text(
        "import tb_gradflow\n"
        "try:\n"
        "    explain = tb_gradflow.explain\n"
        "except ImportError as error:\n"
        "    print(error)\n"
        "else:\n"
        "    import tensorflow as tf\n"
        "    v = tf.Variable(2.5, name='v')\n"
        "    print(explain(lambda: tf.round(v), variables=[v]).findings[0].cause)\n"
    )

    said = run(python, str(program))

    expected = "nondiff_rounding" if has_tensorflow == "True\n" else "pip install tensorflow"
    assert expected in said


def test_nothing_of_the_checkout_is_used(python: Path) -> None:
    where = run(python, "-c", "import tb_gradflow; print(tb_gradflow.__file__)").strip()

    assert Path(where).is_relative_to(python.parents[1])
