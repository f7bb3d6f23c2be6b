"""One self-contained HTML page with the viewer of the tab: no server, no network, nothing to install.

The data is embedded as JSON from which no name can break out. A policy in the head forbids every script but the
viewer's own, and every network address.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from tb_gradflow.errors import LogError
from tb_gradflow.record.schema import FORMAT
from tb_gradflow.serve.reports.excerpt import Excerpt, excerpt
from tb_gradflow.serve.runs.history import History
from tb_gradflow.serve.runs.standing import Standing, standing_or_unknown, worst_first
from tb_gradflow.version import VERSION

VIEWER = Path(__file__).parents[1] / "static" / "index.js"

MOST_BYTES = 2_900_000
"""Limit for a page: what every mail server accepts, and a notebook can hold."""
LEAST_FOR_A_RUN = 300_000

FRAME_HEIGHT = 680

# `default-src` does not cover these.
FORBIDDEN = "base-uri 'none'; form-action 'none'"

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<meta name="generator" content="tb-gradflow {version}">
<title>{title}</title>
</head>
<body>
<pre>{text}</pre>
<script type="application/json" id="gradflow-data">{data}</script>
<script type="module">{viewer}</script>
</body>
</html>
"""

# Closes the text, and gives the frame the notebook's light or dark theme. A notebook may declare its theme by
# `color-scheme`, which a frame inherits. VS Code does not, so there the colour of the text around the frame decides.
# Two cells may show the same page.
_IN_NOTEBOOK = """
for (const text of document.querySelectorAll('[id="IDENTITY"]')) {
  text.removeAttribute("open");
  const match = () => {
    if (!text.isConnected) return;
    const {color, colorScheme} = getComputedStyle(text);
    const [red, green, blue] = color.match(/[\\d.]+/g).map((part) => (color.startsWith("rgb") ? part / 255 : +part));
    const seen = 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 ? "dark" : "light";
    text.previousElementSibling.style.colorScheme = /^(dark|light)$/.test(colorScheme) ? colorScheme : seen;
  };
  match();
  const observer = new MutationObserver(match);
  for (const each of [document.documentElement, document.body]) observer.observe(each, {attributes: true});
}
"""


def page(histories: Mapping[str, History], text: str, step: int | None = None) -> str:
    """The runs by name, with the worst one open; `text` is shown until the viewer has started.

    Raises LogError if a run cannot be read, or if the viewer was not built.
    """
    viewer = viewer_code()
    standings = {name: standing_or_unknown(history) for name, history in histories.items()}
    run = next((name for name, _ in worst_first(standings.items())), "")
    room = max(LEAST_FOR_A_RUN, (MOST_BYTES - len(viewer) - len(text)) // max(1, len(histories)))
    excerpts = {name: excerpt(history, name, room, step) for name, history in histories.items()}
    return _PAGE.format(
        policy=_policy(viewer),
        version=VERSION,
        title=html.escape(f"Gradient flow: {', '.join(histories)}"[:200]),
        text=html.escape(text),
        data=_embeddable(_data(excerpts, standings, run, step)),
        viewer=viewer,
    )


def name_in_page(name: str) -> str:
    """The name of a run in a page that others get; it does not reveal where the run was on this machine."""
    return (PurePath(name).name or "run") if PurePath(name).is_absolute() else name


def framed(page: str, text: str) -> str:
    """The page inside another one, such as a notebook; the text is shown where scripts are not trusted."""
    # The frame has its own origin, so it cannot reach anything in the page around it. Its buttons copy to the clipboard
    # only if that is allowed.
    identity = f"tb-gradflow-{hashlib.sha256(page.encode()).hexdigest()[:12]}"
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts allow-downloads" '
        f'allow="clipboard-write" title="Gradient flow" style="width:100%;height:{FRAME_HEIGHT}px;border:0"></iframe>\n'
        f'<details open id="{identity}"><summary>As text</summary><pre>{html.escape(text)}</pre></details>\n'
        f"<script>{_IN_NOTEBOOK.replace('IDENTITY', identity)}</script>"
    )


def viewer_code() -> str:
    """The viewer as a script inside HTML: nothing in it may look like the start or the end of a script."""
    if not VIEWER.is_file():
        raise LogError(f"the page was not built ({VIEWER} is missing): install the package with `pip install -e .`")
    code = VIEWER.read_text(encoding="utf-8")
    return re.sub(r"<(?=/script|script|!--)", r"\\x3c", code, flags=re.IGNORECASE)


def _policy(viewer: str) -> str:
    digest = base64.b64encode(hashlib.sha256(viewer.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; {FORBIDDEN}"
    )


def _data(
    excerpts: Mapping[str, Excerpt], standings: Mapping[str, Standing], run: str, step: int | None
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "start": {"run": run, "step": step},
        "runs": {
            name: {
                "recorded": each.recorded,
                "kept": each.kept,
                "looked_at": each.looked_at,
                "standing": {"run": name, "name": name, **standings[name].to_json()},
                **each.content,
            }
            for name, each in excerpts.items()
        },
    }


def _embeddable(value: Any) -> str:
    """JSON in which no text can end the script element that contains it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
