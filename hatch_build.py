"""Builds the page of the plugin while the package is built, so that a wheel needs no Node.

Runs for wheels, editable installs and source distributions of a checkout. A source distribution carries the
built page and not its sources, so it needs no Node either.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NO_NODE = """\
The page of this plugin is built from frontend/ and needs Node 20 or newer with npm, and there is no `{program}` on
the PATH. Install Node (https://nodejs.org), or install the released wheel, which needs none:
`pip install tensorboard-plugin-gradflow`."""


class FrontendBuildHook(BuildHookInterface[Any]):
    """Leaves an up-to-date page in `tb_gradflow/serve/static`, or says why it cannot."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        static = root / "tb_gradflow" / "serve" / "static"
        if (root / "frontend" / "package.json").is_file():
            build_page(root / "frontend", static, stamp=root / "build" / "frontend.sha256")
        if not (static / "index.js").is_file():
            raise RuntimeError(f"{static / 'index.js'} is missing: build from a checkout or a complete source archive")


def build_page(frontend: Path, static: Path, stamp: Path) -> None:
    """Builds where the sources changed since `stamp` was written, or the result is gone."""
    fingerprint = source_fingerprint(frontend)
    if (static / "index.js").is_file() and stamp.is_file() and stamp.read_text() == fingerprint:
        return
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise RuntimeError(NO_NODE.format(program=program))
    installed = frontend / "node_modules" / ".package-lock.json"
    lock = frontend / "package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < lock.stat().st_mtime:
        run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], frontend)
    run(["npm", "run", "build"], frontend)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(fingerprint)


def source_fingerprint(frontend: Path) -> str:
    """Changes with every file that the build may read."""
    digest = hashlib.sha256()
    for path in sorted(frontend.rglob("*")):
        relative = path.relative_to(frontend)
        if path.is_file() and relative.parts[0] not in ("node_modules", "dist"):
            digest.update(f"{relative.as_posix()}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def run(command: list[str], directory: Path) -> None:
    # npm is a script of the shell's on Windows, which only its full name starts.
    program = shutil.which(command[0]) or command[0]
    done = subprocess.run([program, *command[1:]], cwd=directory, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(command)}` in {directory} failed with status {done.returncode}: see above")


if __name__ == "__main__":
    ROOT = Path(__file__).parent
    build_page(ROOT / "frontend", ROOT / "tb_gradflow" / "serve" / "static", stamp=ROOT / "build" / "frontend.sha256")
