"""The pages of the causes as text for a terminal: the meaning of each, an example program, its report, and the fix.

The build copies the pages, which are docs/causes in the repository, next to the plugin's page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from tb_gradflow.errors import LogError
from tb_gradflow.plain import clean
from tb_gradflow.record.report import SEVERITIES, Severity
from tb_gradflow.serve.terminal.text import Look

PAGES = Path(__file__).parents[1] / "static" / "causes"

# This section links to files of the repository, which is not available here.
_ELSEWHERE = ("\n## More examples", "\n[All causes]")

_SUGGESTED = 4

_FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCED_WHOLE = re.compile(r"^(```\w*\n.*?^```)$", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_ADDRESS = re.compile(r"<(https?://[^>\s]+)>")
_MEANING = re.compile(r"\*\*What it is\*\* \(([^)]*)\): (.*)")
_REMEDY = re.compile(r"\*\*What to do\*\*: (.*)")


@dataclass(frozen=True, slots=True)
class Explanation:
    """A page, as other formats quote it.

    Attributes:
        severity: The first severity on the page, which most findings of this cause have.
        meaning: A sentence or two.
        remedy: The fix, in one line.
        markdown: The page without its pictures and without links into the repository.
    """

    severity: Severity
    meaning: str
    remedy: str
    markdown: str


def all_causes(look: Look) -> Iterator[str]:
    """A line or two for each cause: its name, its severity and its meaning."""
    for name in _names():
        meaning = _MEANING.search(_page(name))
        severity, words = (meaning[1], meaning[2]) if meaning else ("", "")
        yield f"{look.paint(name, 'strong')}  {look.paint(severity, 'dim')}"
        yield from look.prose(words, "    ")


def page_of(cause: str, look: Look) -> Iterator[str]:
    """The page of one cause. Raises LogError if there is no such cause."""
    name = cause.strip().lower().replace(" ", "_").replace("-", "_")
    names = _names()
    if name not in names:
        near = [each for each in names if name and name in each] or get_close_matches(name, names, _SUGGESTED, 0.5)
        hint = f"did you mean {', '.join(near[:_SUGGESTED])}?" if near else "`tb-gradflow cause` lists them"
        raise LogError(f"there is no cause {cause!r}: {hint}")
    text = _page(name)
    for end in _ELSEWHERE:
        text = text.partition(end)[0]
    for number, part in enumerate(_FENCED.split(text)):
        # Every second part is code, which is never truncated or wrapped.
        yield from _code(part, look) if number % 2 else _prose(part, look)


def explanation_of(cause: str) -> Explanation | None:
    """None if the cause has no page, or if the pages were not built."""
    path = PAGES / f"{cause}.md"
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    meaning, remedy = _MEANING.search(text), _REMEDY.search(text)
    if meaning is None:
        return None
    severity = min(SEVERITIES, key=lambda word: meaning[1].find(word) if word in meaning[1] else len(meaning[1]))
    for end in _ELSEWHERE:
        text = text.partition(end)[0]
    parts = _FENCED_WHOLE.split(text)
    kept = [part if number % 2 else _LINK.sub(r"\1", _PICTURE.sub("", part)) for number, part in enumerate(parts)]
    sentences = [_LINK.sub(r"\1", found[found.re.groups]) if found else "" for found in (meaning, remedy)]
    said, fix = (sentence[:1].upper() + sentence[1:] for sentence in sentences)
    return Explanation(severity, said, fix, "".join(kept).strip())


def _names() -> list[str]:
    names = sorted(path.stem for path in PAGES.glob("*.md"))
    if not names:
        raise LogError(f"the pages were not built ({PAGES} has none): install the package with `pip install -e .`")
    return names


def _page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def _code(text: str, look: Look) -> Iterator[str]:
    yield from (f"    {look.paint(clean(line), 'code')}".rstrip() for line in text.rstrip("\n").split("\n"))
    yield ""


def _prose(text: str, look: Look) -> Iterator[str]:
    for block in text.split("\n\n"):
        words = _ADDRESS.sub(r"\1", _LINK.sub(r"\1", _PICTURE.sub("", block))).replace("**", "").strip()
        if words.startswith("#"):
            yield look.paint(words.lstrip("# ").replace("`", ""), "strong")
        elif words:
            yield from look.prose(words.replace("\n", " "))
        else:
            continue
        yield ""
