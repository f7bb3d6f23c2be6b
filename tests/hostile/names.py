"""A log in which everything that has a name has one that would do something, were it not shown as text."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_origin, get_type_hints

from benchmarks.lengthened import records
from tb_gradflow.record.schema import Layer, Passage, Session, Source, Trace
from tb_gradflow.store.directory import DirectoryReader
from tb_gradflow.store.run import StoredRun
from tests.store.samples import open_writer, session, step, trace

MARKUP = "<img src=x onerror=\"document.title='pwned'\"><script>document.title='pwned'</script>"
TERMINAL = "\x1b]0;pwned\x07\x1b[2J\x9b31m\r\x08"
TURNED = "\u202egnp.eman\u2066\u200f"
QUOTES = "'\"`\\]]>--><!--&lt;${document.title='pwned'}{{7*7}}"
PATH = "../../../../etc/passwd"
COMMAND = "\n::error file=/etc/passwd,line=1::pwned\n##[error]pwned"
LONG = "long" * 25_000

EVERYTHING = MARKUP + TERMINAL + TURNED + QUOTES + PATH + COMMAND

RUN = "run <img src=x onerror=document.title='pwned'> ${x} \u202e ]]>"


def hostile_trace(long: str = LONG) -> Trace:
    """The sample's, renamed."""
    whole = trace()
    ops = tuple(replace(op, name=f"{EVERYTHING}/{op.name}", api=f"tf.{MARKUP}") for op in whole.ops)
    less = replace(ops[2], name=f"mask/{long}/{ops[2].name}")
    code = f"mask = tf.sequence_mask(threshold, width)  # {EVERYTHING}"
    return replace(
        whole,
        ops=(*ops[:2], less, *ops[3:]),
        variables=(
            replace(whole.variables[0], name=f"dense/{EVERYTHING}"),
            replace(whole.variables[1], name=f"step_filter/{EVERYTHING}/{long}"),
        ),
        targets=(replace(whole.targets[0], name=f"loss {EVERYTHING}"),),
        layers=(Layer(EVERYTHING, MARKUP, QUOTES), Layer("mask", MARKUP, MARKUP)),
        sources=(Source(f"{PATH}{MARKUP}{TERMINAL}.py", 17, QUOTES, code),),
        passages=(Passage(f"{PATH}{MARKUP}.py", 17, code.replace("\n", " ").replace("\r", " ")),),
        notes=(EVERYTHING,),
    )


def hostile_session() -> Session:
    return replace(
        session(), model=EVERYTHING, tool=MARKUP, tensorflow=MARKUP, keras=MARKUP, expected=(EVERYTHING, "[")
    )


def write_hostile(logdir: Path, long: str = LONG) -> Path:
    """The log, in a run of a name like the others; its directory."""
    directory = logdir / RUN
    with open_writer(directory, hostile_session()) as writer:
        writer.write_trace(hostile_trace(long))
        for number in range(4):
            writer.write_step(step(number))
    return directory


KEPT = {("Op", "type"), ("Tensor", "dtype"), ("Variable", "dtype"), ("Session", "id")}
"""Strings without which a log says nothing, or something else."""

CODE = {("Source", "code"), ("Passage", "text"), ("Passage", "after"), ("Trial", "after")}
"""Here each line has a comment, so that it can still be edited."""


def renamed(record: Any, place: tuple[str, str] = ("", "")) -> Any:
    """The same record, with something hostile after every string of it, whatever it stands for."""
    if isinstance(record, str) and record and place not in KEPT:
        if place in CODE:
            comment = EVERYTHING.replace("\n", " ").replace("\r", " ")
            return "\n".join(f"{line}  # {comment}" if line.strip() else line for line in record.split("\n"))
        return record + EVERYTHING
    if isinstance(record, tuple):
        return tuple(renamed(each, place) for each in record)
    if not is_dataclass(record) or isinstance(record, type):
        return record
    kind = type(record).__name__
    # What is one of a few words has no others: a log with more is refused.
    free = [name for name, hint in get_type_hints(type(record)).items() if get_origin(hint) is not Literal]
    return replace(record, **{name: renamed(getattr(record, name), (kind, name)) for name in free})


def write_renamed(log_dir: Path, of: Path) -> None:
    """A log with every kind of record, all of whose strings are hostile."""
    run = StoredRun(DirectoryReader(str(of / "gradflow")))
    index = run.index()
    with open_writer(log_dir, renamed(index.session)) as writer:
        for number in index.traces:
            writer.write_trace(renamed(run.trace(index.session.id, number)))
        for record in records(run):
            writer.write_step(record if record.values is None else replace(record, values=renamed(record.values)))
