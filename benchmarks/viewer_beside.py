"""How fast the page is compared with other graph viewers on the same models: TensorBoard's Graphs, Model Explorer.

    python -m venv explorer && explorer/bin/pip install ai-edge-model-explorer
    python benchmarks/viewer_beside.py --model-explorer explorer/bin/model-explorer [--repeats 3] [--limit 120]

Each viewer gets the same ops, scopes and edges (`beside_graphs.py`): two real trainings, and two synthetic models. The
viewers are measured alternately; each view is a new headless Chromium without a cache, with software rendering, 1440 x
900. Prints medians of the views:

first picture   ms from the address to the first frame with the graph, servers running; in brackets the very first view
data in hand    ms of that after the last response that the picture needs; known only for our page
open a group    ms from the click to the first frame with the content of the largest group at the top
frames          per second, and the longest wait for one in ms, while the graph is dragged for 3 s with that group open
heap, process   MB of JavaScript after a collection (without workers), and of the whole renderer process
all open        ms from the click to the first frame with everything open, and how many parts are then laid out
frames, heap    the same again with everything open

A viewer that does not respond within the limit is stopped, and the table says so.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.beside_graphs import prepared
from benchmarks.beside_look import Look, look_at
from benchmarks.beside_tools import ModelExplorer, OurTab, TheirTab, Viewer, model_explorer
from tests.serve.processes import tensorboard

HEADINGS = (
    "| model | viewer | first picture (very first) | data in hand | open a group | frames/s (longest) | heap, process "
    "| all open | parts | frames/s (longest) | heap, process |"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-explorer", default=shutil.which("model-explorer"), help="its command")
    parser.add_argument("--trained", nargs="*", default=["resnet50", "transformer"], help="models of `models.py`")
    parser.add_argument("--ops", type=int, nargs="*", default=[8_000, 30_000], help="sizes of the synthetic models")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120, help="seconds that a viewer may take for each action")
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args()
    if options.model_explorer is None or shutil.which(options.model_explorer) is None:
        raise SystemExit(
            "Model Explorer is not there: `pip install ai-edge-model-explorer` in a virtual environment of its own, "
            "then name its command with --model-explorer DIRECTORY/bin/model-explorer"
        )
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        models = prepared(Path(place), options.ops, options.trained)
        with tensorboard(f"--logdir={place}/logs") as board, model_explorer(options.model_explorer) as explorer:
            runs = {entry["name"].removesuffix("/gradflow"): entry["run"] for entry in board.wait_for_runs(len(models))}
            looks: dict[tuple[str, str], list[Look]] = {}
            for _ in range(options.repeats):
                for model in models:
                    viewers: Sequence[Viewer] = (
                        OurTab(f"{board.url}#gradflow&p.gradflow.run={runs[model]}&p.gradflow.tab=-"),
                        TheirTab(f"{board.url}#graphs&run={model}"),
                        ModelExplorer(explorer, f"{place}/explorer/{model}.pb"),
                    )
                    for viewer in viewers:
                        look = look_at(playwright, options.chromium, viewer, options.limit)
                        looks.setdefault((model, viewer.name), []).append(look)
                        print(f"{model} in {viewer.name}: {look}", file=sys.stderr, flush=True)
    print(HEADINGS)
    print("|---" * HEADINGS.count(" | ") + "|---|")
    for (model, name), of in looks.items():
        print(f"| {model} | {name} | {' | '.join(cells(of))} |")


def cells(looks: Sequence[Look]) -> Iterator[str]:
    first = looks[0].numbers.get("first")
    yield middle(looks, "first") + ("" if first is None else f" ({first:,.0f})")
    yield middle(looks, "in_hand")
    yield middle(looks, "group")
    yield f"{middle(looks, 'frames')} ({middle(looks, 'longest')})"
    yield f"{middle(looks, 'heap')}, {middle(looks, 'process')}"
    yield middle(looks, "all")
    yield middle(looks, "parts")
    yield f"{middle(looks, 'frames_all')} ({middle(looks, 'longest_all')})"
    yield f"{middle(looks, 'heap_all')}, {middle(looks, 'process_all')}"


def middle(looks: Sequence[Look], column: str) -> str:
    """The median, or why there is none."""
    known = [look.numbers[column] for look in looks if column in look.numbers]
    failed = [look.failures[column] for look in looks if column in look.failures]
    if len(known) > len(failed):
        told = f"{statistics.median(known):,.0f}"
        return f"{told}, but {failed[0]} ({len(failed)} of {len(looks)} times)" if failed else told
    return failed[0] if failed else "-"


if __name__ == "__main__":
    main()
