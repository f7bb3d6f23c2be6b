"""Serves made-up runs under the plugin's routes, and the built page, inside TensorBoard's security policy.

PYTHONPATH=.. python dev/server.py [PORT]        # from frontend/, after `npm run build`
"""

from __future__ import annotations

import array
import gzip
import json
import math
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from fixtures import CHUNK, Run, runs

from tb_gradflow.record.codec import encode
from tb_gradflow.record.schema import VARIABLE_STATISTICS, Session
from tb_gradflow.serve.runs.shared_settings import shared_settings, varying
from tb_gradflow.serve.runs.standing import Standing, worst_of

STATIC = Path(__file__).parents[2] / "tb_gradflow" / "serve" / "static"
ROUTES = "/data/plugin/gradflow/"
POLICY = (
    "default-src 'self';font-src 'self' data:;img-src 'self' data: blob:;object-src 'none';"
    "style-src 'self' data: 'unsafe-inline';connect-src 'self';script-src 'self' 'unsafe-eval' 'nonce-dev'"
)
FRAME = b"""<!DOCTYPE html><head><base href="plugin/gradflow/" /></head>
<body><script type="module" nonce="dev">import("./static/index.js").then((m) => void m.render());</script></body>"""
OUTER = b"""<!DOCTYPE html><style>body{margin:0} iframe{display:block;border:0;width:100vw;height:100vh}</style>
<body><iframe src="data/plugin_entry.html?name=gradflow"></iframe></body>"""

RUNS: dict[str, Run] = {}
UNKNOWN = {"began": 0, "health": "unknown"}
BEGIN = time.time()


def shown_steps(run: Run) -> list[int]:
    """The run `live` grows by a step a second."""
    return run.steps if run.name != "live" else run.steps[: 3 + int(time.time() - BEGIN)]


def loss_at(step: int) -> float:
    return 2.3 / (1 + step / 90) + 0.2


def overview(run: Run) -> object:
    steps = shown_steps(run)
    chunks = [{"id": steps[at], "trace": 0, "steps": steps[at : at + CHUNK]} for at in range(0, len(steps), CHUNK)]
    return {
        "format": 1,
        "run": run.name,
        "name": run.name,
        "session": encode(Session(1, "1700000000000", "0.1", "2.21", "3.15", "model", ())),
        "traces": [0],
        "chunks": chunks,
        "steps": steps,
        "step_trace": [0] * len(steps),
        "wall_times": [1.7e9 + step for step in steps],
        "losses": [[loss_at(step)] for step in steps],
    }


def joined(parts: list[array.array[float]]) -> bytes:
    return b"".join(part.tobytes() for part in parts)


def in_chunk(run: Run, values: Callable[[int], array.array[float]], chunk: int) -> bytes:
    at = run.steps.index(chunk)
    return joined([values(step) for step in shown_steps(run)[at : at + CHUNK]])


def column(run: Run, values: Callable[[int], array.array[float]], row: int, width: int) -> bytes:
    return joined([values(step)[row * width : (row + 1) * width] for step in shown_steps(run)])


def heat(run: Run, quantity: str) -> bytes:
    """A column for each step, as the plugin codes it."""
    rows = {each.variable: each.row for each in run.trace.variable_gradients if each.row is not None}
    count = len(run.trace.variables)

    def number(step: int, variable: int) -> float:
        if quantity != "gradient":
            weight, update = run.weights(step)[variable * len(VARIABLE_STATISTICS) :][:2]
            return {"weight": weight, "update": update, "ratio": update / weight}[quantity]
        if variable not in rows:
            return -1.0
        norm, _, _, _, nans, infs = run.gradients(step)[rows[variable] * 6 :][:6]
        return math.nan if nans > 0 else math.inf if infs > 0 else norm

    return joined([array.array("f", (number(step, at) for at in range(count))) for step in shown_steps(run)])


def course(run: Run) -> object:
    """Every finding is there from the first step on."""
    findings = run.report(run.steps[-1]).findings
    told = [{"cause": each.cause, "op": "", "target": 0, "severity": each.severity} for each in findings]
    return {
        "format": 1,
        "steps": run.steps[:1],
        "findings": told,
        "present": [list(range(len(told)))],
        "complete": True,
    }


def standing(run: Run) -> Standing:
    """As the plugin says it; the runs are given learning rates, so that there is something to see."""
    diagnosis = run.report(run.steps[-1])
    worst = worst_of(diagnosis.findings)
    step = shown_steps(run)[-1]
    return Standing(
        health="healthy" if worst is None else worst.severity,
        summary=diagnosis.summary,
        cause="" if worst is None else worst.cause,
        place="" if worst is None or worst.source is None else f"{worst.source.file}:{worst.source.line}",
        first=None if worst is None else run.steps[0],
        step=step,
        steps=len(shown_steps(run)),
        loss=loss_at(step),
        recorded=1.7e9 + step,
        hyperparameters={"lr": 0.01 if worst is None else 0.1},
    )


def standings() -> object:
    known = {name: standing(run) for name, run in RUNS.items()}
    shared = shared_settings(list(known.values()))
    return {
        "format": 1,
        "runs": [{"run": name, "name": name, **each.to_json()} for name, each in known.items()],
        "complete": True,
        "shared": shared,
        "hyperparameters": varying(list(known.values()), shared),
    }


def answer(route: str, query: dict[str, str]) -> object:
    """Bytes for numbers, anything else for JSON."""
    if route == "runs":
        health = {name: standing(run).health for name, run in RUNS.items()}
        entries: list[object] = [
            {"run": name, "name": name, "error": None, "began": 1.7e9, "health": health[name]} for name in RUNS
        ]
        return {
            "format": 1,
            "runs": [*entries, {"run": "old", "name": "old", "error": "The log of `old` has format 99.", **UNKNOWN}],
        }
    if route == "standings":
        return standings()
    run = RUNS[query["run"]]
    number = {name: int(value) for name, value in query.items() if name not in ("run", "session", "quantity")}
    routes: dict[str, Callable[[], object]] = {
        "overview": lambda: overview(run),
        "trace": lambda: encode(run.trace),
        "report": lambda: encode(run.report(number.get("step", run.steps[-1]))),
        "gradients": lambda: in_chunk(run, run.gradients, number["chunk"]),
        "variables": lambda: in_chunk(run, run.weights, number["chunk"]),
        "series": lambda: column(run, run.gradients, number["row"], 6),
        "weights": lambda: column(run, run.weights, number["variable"], len(VARIABLE_STATISTICS)),
        "heat": lambda: heat(run, query["quantity"]),
        "course": lambda: course(run),
    }
    return routes[route]()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/":
            self.respond(200, "text/html", OUTER)
        elif parts.path == "/data/plugin_entry.html":
            self.respond(200, "text/html", FRAME)
        elif parts.path.startswith(f"{ROUTES}static/"):
            self.respond(200, "text/javascript", (STATIC / Path(parts.path).name).read_bytes())
        elif parts.path.startswith(ROUTES):
            self.route(parts.path.removeprefix(ROUTES), {name: v[0] for name, v in parse_qs(parts.query).items()})
        else:
            self.respond(404, "text/plain", b"")

    def route(self, name: str, query: dict[str, str]) -> None:
        try:
            body = answer(name, query)
        except (KeyError, ValueError) as error:
            text = json.dumps({"error": f"`{name}` found nothing for {query}: {error!r}"})
            self.respond(404, "application/json", text.encode())
            return
        if isinstance(body, bytes):
            self.respond(200, "application/octet-stream", body)
        else:
            self.respond(200, "application/json", json.dumps(body, allow_nan=False).encode())

    def respond(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if kind == "text/html":
            self.send_header("Content-Security-Policy", POLICY)
        if len(body) > 1000:
            body = gzip.compress(body, 3)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silence: the browser's own log says more."""


if __name__ == "__main__":
    RUNS.update({run.name: run for run in runs()})
    RUNS["live"] = Run(**{**vars(RUNS["demo/fixed"]), "name": "live"})
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 6106
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
