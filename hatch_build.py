"""Builds the page of the plugin while the package is built, so that a wheel needs no Node.

Runs for wheels, editable installs and source distributions of a checkout. A source distribution carries the
built page and not its sources, so it needs no Node either.
"""

from __future__ import annotations

import hashlib
import html
import re
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
            build_causes(root / "docs", static / "causes")
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


CAUSE_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ max-width: 50rem; margin: 2rem auto; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; }}
img {{ display: block; max-width: 100%; border: 1px solid #8884; border-radius: 8px; }}
pre {{ overflow-x: auto; padding: 0.8rem; border: 1px solid #8884; border-radius: 8px; font-size: 13px; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def build_causes(docs: Path, out: Path) -> None:
    """The pages of the causes: as HTML with pictures, to which the findings in the tab lead, and as they are written,
    for `tb-gradflow cause`."""
    out.mkdir(parents=True, exist_ok=True)
    made = {*(docs / "causes").glob("*.md"), *(docs / "pictures" / "causes").glob("*.png")}
    for path in made:
        shutil.copyfile(path, out / path.name)
    for path in out.iterdir():
        if path.stem not in {each.stem for each in made}:
            path.unlink()
    for page in sorted((docs / "causes").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        content = CAUSE_PAGE.format(title=html.escape(page.stem), body="\n".join(html_of(text)))
        (out / f"{page.stem}.html").write_text(content, encoding="utf-8")


def html_of(text: str) -> list[str]:
    """The little of Markdown that these pages are written in: headings, paragraphs, lists of links, fenced code."""
    # What follows leads to files of the repository, which is not here.
    text = text.partition("\n## More examples")[0].partition("\n[All causes]")[0]
    parts = re.split(r"^```\w*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    blocks = []
    for number, part in enumerate(parts):
        if number % 2:
            blocks.append(f"<pre><code>{html.escape(part)}</code></pre>")
        else:
            blocks += [block_of(each) for each in part.split("\n\n") if each.strip()]
    return blocks


def block_of(block: str) -> str:
    heading = re.match(r"(#+) (.*)", block.strip())
    if heading:
        level = len(heading[1])
        return f"<h{level}>{inline_of(heading[2])}</h{level}>"
    picture = re.fullmatch(r"!\[([^\]]*)\]\((?:\S*/)?([\w.]+)\)", block.strip())
    if picture:
        return f'<p><img src="{picture[2]}" alt="{html.escape(picture[1])}" width="900"></p>'
    return f"<p>{inline_of(block.strip())}</p>"


def inline_of(text: str) -> str:
    text = html.escape(text, quote=False)
    text = re.sub(r"\[([^\]]+)\]\((?!http)[^)]*\)", r"\1", text)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
    return re.sub(r"&lt;(https://[^\s&]+(?:&amp;[^\s&]+)*)&gt;", r'<a href="\1" rel="noopener">\1</a>', text)


def run(command: list[str], directory: Path) -> None:
    # npm is a script of the shell's on Windows, which only its full name starts.
    program = shutil.which(command[0]) or command[0]
    done = subprocess.run([program, *command[1:]], cwd=directory, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(command)}` in {directory} failed with status {done.returncode}: see above")


if __name__ == "__main__":
    ROOT = Path(__file__).parent
    STATIC = ROOT / "tb_gradflow" / "serve" / "static"
    build_page(ROOT / "frontend", STATIC, stamp=ROOT / "build" / "frontend.sha256")
    build_causes(ROOT / "docs", STATIC / "causes")
