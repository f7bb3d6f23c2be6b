"""Edits of the user's files, applied to the functions in memory for a while. The files are not changed.

The edited text of a file is compiled, and each live function of that file gets its new code. AutoGraph reads a
function's text through `linecache`, which returns the edited text in the meantime. Code that has already run, such as
that of a module or of an `__init__`, cannot be run again this way; the context reports whether everything that an edit
changes has run.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import linecache
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType
from typing import Any

from tb_gradflow.record.report import Edit
from tb_gradflow.trace.eager.loop_body import BODY, Body
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.explain.wider_closures import UnknownValueError, apart, values_of, with_globals
from tb_gradflow.trace.protection.living_objects import functions
from tb_gradflow.trace.source.user_line import is_users, path_in_log, working_directory
from tb_gradflow.trace.tf_internals.function_caches import traced_anew

_ATTRIBUTE = re.compile(r"has no attribute '(\w+)'")

# The attribute under which AutoGraph caches converted functions, and its prefix for their names.
_CONVERTED, _PREFIX = "__autograph_generated_file", "tf__"


RUN_BEFORE = "These lines ran before the step, so the edit could not be tried in it."


class CannotApplyError(Exception):
    """An edit cannot be applied in memory; the message is the reason, as a sentence."""


@dataclass(slots=True)
class Ran:
    """Which of the code that an edit changes ran while the edit was applied.

    Attributes:
        changed: The code objects whose behaviour changed.
        seen: Those of them that were called.
        is_over: Whether the edit is applied no more. A thread that began meanwhile may go on.
    """

    changed: frozenset[CodeType]
    seen: set[CodeType] = field(default_factory=set)
    is_over: bool = False

    @property
    def all_of_it(self) -> bool:
        return bool(self.changed) and self.seen == self.changed

    @property
    def half_of_it(self) -> bool:
        """Whether a function ran, but not the code around it, which the edit changes too: that ran before the step."""
        return any(_is_inside(inner, outer) for outer in self.changed - self.seen for inner in self.seen)

    def lacks(self, error: Exception) -> bool:
        """Whether an error is about an attribute that code which has not run sets, such as that of an `__init__`."""
        found = _ATTRIBUTE.search(str(error))
        return found is not None and any(found[1] in code.co_names for code in self.changed - self.seen)

    def notice(self, frame: FrameType, event: str, _: Any) -> None:
        """A function for `sys.setprofile`."""
        if self.is_over:
            sys.setprofile(None)
            return
        if event != "call":
            return
        code = frame.f_code
        if code in self.changed:
            self.seen.add(code)
        elif _CONVERTED in code.co_filename:
            name = code.co_name.removeprefix(_PREFIX)
            self.seen.update(each for each in self.changed if each.co_name == name or _is_lambda(each, name))


def _is_inside(inner: CodeType, outer: CodeType) -> bool:
    return any(each is inner or _is_inside(inner, each) for each in _nested(outer))


def _is_lambda(code: CodeType, converted: str) -> bool:
    return code.co_name == "<lambda>" and converted in ("lam", "<lambda>")


@contextlib.contextmanager
def edited(edits: Sequence[Edit], variables: Mapping[str, Any] | None = None) -> Iterator[Ran]:
    """The program as it is with the edits, as long as the context is open; `variables` by what the program calls them.

    Raises:
        CannotApplyError: one of them cannot be applied to the functions in memory.
        SyntaxError: the edited text is not valid Python.
    """
    by_file: dict[str, list[FunctionType]] = {}
    for each in functions():
        if is_users(each.__code__.co_filename):
            by_file.setdefault(each.__code__.co_filename, []).append(each)
    files = _files(edits, by_file)
    new_text: dict[str, str] = {}
    swaps: list[tuple[FunctionType, CodeType, CodeType]] = []
    changed: set[CodeType] = set()
    besides: list[tuple[FunctionType, dict[str, Any]]] = []
    for file, listed in files.items():
        text = "".join(linecache.getlines(file))
        new_text[file] = _text_with(text, listed)
        old, new = _compiled(text, file), _compiled(new_text[file], file)
        pairs = _Pairs(old, new, listed)
        wider = [
            (each, code)
            for each in by_file[file]
            if (code := pairs.of(each.__code__)) is not None and code.co_freevars != each.__code__.co_freevars
        ]
        if wider:
            besides += [(each, _read_besides(each, code, by_file[file], variables or {})) for each, code in wider]
            cells = {code: frozenset(each.__code__.co_freevars) for each, code in wider}
            pairs = _Pairs(old, with_globals(new_text[file], file, cells, _TOP_LEVEL_AWAIT), listed)
        changed |= pairs.changed
        swaps += [(each, each.__code__, now) for each in by_file[file] if (now := pairs.of(each.__code__)) is not None]
        for each, body in ((each, vars(each)[BODY]) for each in by_file[file] if BODY in vars(each)):
            now = pairs.code_of(body, new_text[file])
            swaps.append((each, each.__code__, now))
            if _own(now) != _own(each.__code__) and all(map(body.has, listed)):
                # They are a part of it that runs again without the rest.
                changed = (changed - {pairs.of(body.origin)}) | {now}
    for function, _, now in swaps:
        if function.__code__.co_freevars != now.co_freevars:
            raise _closes_over(now)
    with contextlib.ExitStack() as undo:
        undo.enter_context(_text_of_files(new_text))
        undo.enter_context(traced_anew(_is_of_the_user))
        for function, values in besides:
            # AutoGraph reads the text, in which nothing has another name.
            for name, value in (pair for key in values for pair in ((key, values[key]), (apart(key), values[key]))):
                if name not in function.__globals__:
                    function.__globals__[name] = value
                    undo.callback(function.__globals__.pop, name, None)
        for function, before, now in swaps:
            undo.callback(setattr, function, "__code__", before)
            function.__code__ = now
        ran = Ran(frozenset(changed))
        undo.callback(setattr, ran, "is_over", True)
        # A strategy runs the step of each replica in a thread of its own.
        for profiled in (sys, threading):
            undo.callback(profiled.setprofile, profiled.getprofile())
            profiled.setprofile(ran.notice)
        yield ran


def _read_besides(
    function: FunctionType, code: CodeType, others: Sequence[FunctionType], variables: Mapping[str, Any]
) -> dict[str, Any]:
    names = sorted(set(code.co_freevars) - set(function.__code__.co_freevars))
    try:
        return values_of(function, names, others, variables)
    except UnknownValueError:
        raise _closes_over(code) from None


def _closes_over(code: CodeType) -> CannotApplyError:
    return CannotApplyError(
        f"With the edit, `{code.co_name}` reads more variables of its enclosing function, so it could not be tried "
        "in memory."
    )


def _is_of_the_user(function: Any) -> bool:
    inner = inspect.unwrap(function) if callable(function) else function
    code = getattr(getattr(inner, "__func__", inner), "__code__", None)
    # Other callables, such as a bound object, may lead to the user's code too.
    return code is None or is_users(code.co_filename)


def _files(edits: Sequence[Edit], by_file: Mapping[str, Any]) -> dict[str, list[Edit]]:
    """The edits by Python's name of the file; the log has a shorter name for it."""
    found: dict[str, list[Edit]] = {}
    for edit in edits:
        meant = [file for file in by_file if path_in_log(file, working_directory()) == edit.file and _reads(file, edit)]
        if not meant:
            # Code of a file without a function in memory cannot run again.
            raise CannotApplyError(RUN_BEFORE)
        if len(meant) > 1:
            raise CannotApplyError(f"Several loaded files are named {edit.file}, so the edit was not tried.")
        found.setdefault(meant[0], []).append(edit)
    return found


def _reads(file: str, edit: Edit) -> bool:
    lines = [line.rstrip("\r\n") for line in linecache.getlines(file)[edit.line - 1 : edit.end_line]]
    return lines == edit.before.split("\n")


def _text_with(text: str, edits: Sequence[Edit]) -> str:
    lines = text.splitlines(keepends=True)
    for edit in sorted(edits, key=lambda each: -each.line):
        after = [f"{line}\n" for line in edit.after.split("\n")] if edit.after else []
        lines[edit.line - 1 : edit.end_line] = after
    return "".join(lines)


def _compiled(text: str, file: str) -> CodeType:
    # A notebook cell may use `await` at its top level.
    code: CodeType = compile(text, file, "exec", flags=_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


_TOP_LEVEL_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


@contextlib.contextmanager
def _text_of_files(texts: Mapping[str, str]) -> Iterator[None]:
    before = {file: linecache.cache.get(file) for file in texts}
    # Without a modification time, `linecache` does not check the file again.
    entries = {file: (len(text), None, text.splitlines(keepends=True), file) for file, text in texts.items()}
    updated = linecache.updatecache

    def update(filename: str, module_globals: dict[str, Any] | None = None) -> list[str]:
        # AutoGraph makes `linecache` read each file of a module again before it converts a function of it.
        if filename not in entries:
            return updated(filename, module_globals)
        linecache.cache[filename] = entries[filename]
        return entries[filename][2]

    linecache.updatecache = update
    linecache.cache.update(entries)
    try:
        yield
    finally:
        linecache.updatecache = updated
        for file, entry in before.items():
            if entry is None:
                linecache.cache.pop(file, None)
            else:
                linecache.cache[file] = entry


class _Pairs:
    """Maps each code object of a file to the one at the same place in the edited text.

    Attributes:
        changed: The new ones whose behaviour differs from the old ones.
    """

    def __init__(self, old: CodeType, new: CodeType, edits: Sequence[Edit]) -> None:
        self._edits = sorted(edits, key=lambda each: each.line)
        self._new: dict[CodeType, CodeType] = {}
        self._by_place: dict[tuple[int, str], list[CodeType]] = {}
        self.changed: set[CodeType] = set()
        self._pair(old, new)

    def of(self, live: CodeType) -> CodeType | None:
        """The new code of a function in memory; `None` if the function does not come from its file's text, or if that
        is not certain.
        """
        if live in self._new:
            return self._new[live]
        # For example, code that pytest has rewritten keeps its position.
        found = self._by_place.get((live.co_firstlineno, live.co_name), [])
        return found[0] if len(found) == 1 else None

    def code_of(self, body: Body, text: str) -> CodeType:
        """The new code of statements that run alone, in the edited text.

        Raises:
            CannotApplyError: with the edits they do not.
        """
        try:
            return body.code(text, self._line_now)
        except NotRepeatable as reason:
            raise CannotApplyError(f"It was not tried in this step: {reason}.") from None

    def _pair(self, old: CodeType, new: CodeType) -> None:
        self._new[old] = new
        self._by_place.setdefault((old.co_firstlineno, old.co_name), []).append(new)
        if _own(old) != _own(new):
            self.changed.add(new)
        counted: Counter[tuple[int, str]] = Counter()
        inside = {}
        for each in _nested(new):
            place = (each.co_firstlineno, each.co_name)
            inside[place, counted[place]] = each
            counted[place] += 1
        counted.clear()
        for each in _nested(old):
            place = (self._line_now(each.co_firstlineno), each.co_name)
            partner = inside.get((place, counted[place]))
            counted[place] += 1
            if partner is not None:
                self._pair(each, partner)

    def _line_now(self, line: int) -> int:
        moved = 0
        for edit in self._edits:
            if edit.end_line < line:
                moved += (len(edit.after.split("\n")) if edit.after else 0) - (edit.end_line - edit.line + 1)
            elif edit.line <= line:
                moved += _moved_inside(edit, line - edit.line)
        return line + moved


def _moved_inside(edit: Edit, place: int) -> int:
    """The number of lines by which an edit moves a line that it keeps: an edit may span the head of a function."""
    matcher = difflib.SequenceMatcher(None, edit.before.split("\n"), edit.after.split("\n"), autojunk=False)
    kept = (block for block in matcher.get_matching_blocks() if block.a <= place < block.a + block.size)
    return next((block.b - block.a for block in kept), 0)


def _nested(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _own(code: CodeType) -> tuple[Any, ...]:
    """What a code object itself does, regardless of its position and of its nested functions."""
    # Types and texts, because 0, 0.0 and -0.0 are equal.
    constants = [each.co_name if isinstance(each, CodeType) else (type(each), repr(each)) for each in code.co_consts]
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
