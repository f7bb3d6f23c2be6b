"""What the build makes: a wheel that needs no Node, and errors that say what is missing."""

from __future__ import annotations

import importlib.metadata
from argparse import Namespace
from pathlib import Path

import pytest
from tensorboard.plugins.base_plugin import TBLoader

import hatch_build
from tb_gradflow.serve.loader import SAMPLES, GradFlowLoader
from tb_gradflow.version import VERSION

DISTRIBUTION = "tensorboard-plugin-gradflow"


def test_the_installed_package_tells_its_version() -> None:
    assert importlib.metadata.version(DISTRIBUTION) == VERSION


def test_tensorboard_finds_the_plugin() -> None:
    points = importlib.metadata.distribution(DISTRIBUTION).entry_points
    [point] = points.select(group="tensorboard_plugins")

    assert point.name == "gradflow"
    assert point.load() is GradFlowLoader
    assert issubclass(GradFlowLoader, TBLoader)


def test_the_command_is_installed() -> None:
    [point] = importlib.metadata.distribution(DISTRIBUTION).entry_points.select(group="console_scripts")

    assert (point.name, point.value) == ("tb-gradflow", "tb_gradflow.cli.main:main")


def test_samples_of_the_plugin_are_kept_unless_the_user_says_otherwise() -> None:
    unset, given = Namespace(samples_per_plugin={"images": 3}), Namespace(samples_per_plugin={"gradflow": 7})

    GradFlowLoader().fix_flags(unset)
    GradFlowLoader().fix_flags(given)

    assert unset.samples_per_plugin == {"images": 3, "gradflow": SAMPLES}
    assert given.samples_per_plugin == {"gradflow": 7}


@pytest.fixture
def frontend(tmp_path: Path) -> Path:
    """A small npm package whose build appends a line to `index.js`."""
    directory = tmp_path / "frontend"
    (directory / "src").mkdir(parents=True)
    (directory / "src" / "main.ts").write_text("export {}")
    (directory / "package.json").write_text(
        '{"name": "page", "version": "1.0.0", "scripts": {"build": "echo built >> ../static/index.js"}}'
    )
    (directory / "package-lock.json").write_text(
        '{"name": "page", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": {"name": "page"}}}'
    )
    (tmp_path / "static").mkdir()
    return directory


def build(frontend: Path) -> str:
    static = frontend.parent / "static"
    hatch_build.build_page(frontend, static, stamp=frontend.parent / "build" / "stamp")
    return (static / "index.js").read_text()


def test_the_page_is_built_when_its_sources_change_and_only_then(frontend: Path) -> None:
    assert build(frontend) == "built\n"
    assert build(frontend) == "built\n"

    (frontend / "src" / "main.ts").write_text("export {};")

    assert build(frontend) == "built\nbuilt\n"


def test_the_page_is_built_again_when_it_is_gone(frontend: Path) -> None:
    build(frontend)
    (frontend.parent / "static" / "index.js").unlink()

    assert build(frontend) == "built\n"


def test_a_machine_without_node_is_told_what_to_do(frontend: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(frontend))

    with pytest.raises(RuntimeError, match=r"needs Node 20 or newer with npm, and there is no `node`"):
        build(frontend)


def test_a_build_that_fails_stops_the_package(frontend: Path) -> None:
    package = frontend / "package.json"
    package.write_text(package.read_text().replace("echo built", "exit 3; echo"))

    with pytest.raises(RuntimeError, match=r"`npm run build` in .* failed with status 3"):
        build(frontend)


def test_a_page_of_a_cause_takes_its_picture_along_and_leaves_nothing_of_one_that_is_gone(tmp_path: Path) -> None:
    docs, out = tmp_path / "docs", tmp_path / "static" / "causes"
    (docs / "causes").mkdir(parents=True)
    (docs / "pictures" / "causes").mkdir(parents=True)
    out.mkdir(parents=True)
    (docs / "causes" / "log_zero.md").write_text('# `log_zero`\n\n![A "log"](../pictures/causes/log_zero.png)\n')
    (docs / "pictures" / "causes" / "log_zero.png").write_bytes(b"picture")
    (out / "renamed.html").write_text("")

    hatch_build.build_causes(docs, out)

    assert {path.name for path in out.iterdir()} == {"log_zero.html", "log_zero.md", "log_zero.png"}
    assert (out / "log_zero.png").read_bytes() == b"picture"
    assert '<img src="log_zero.png" alt="A &quot;log&quot;" width="900">' in (out / "log_zero.html").read_text()
