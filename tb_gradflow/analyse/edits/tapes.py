"""Fixes of how a gradient is requested: what the tape records, and what it is asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tb_gradflow.analyse.user_code.candidate import Candidate, candidates
from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.analyse.user_code.definitions import expression_of
from tb_gradflow.analyse.user_code.draft import Draft
from tb_gradflow.analyse.user_code.place import Place, name_of, place_at, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.report import Edit

_NOTHING = "Nothing else changes."


def watching(group: Group) -> Iterator[Candidate]:
    """A tape that watches variables again, or the tensor that the gradient is requested for."""
    place = _request(group)
    if place is None:
        return
    code = place.code
    tapes = [node for node in ast.walk(_function(place)) if _is_tape(node)]
    for tape in tapes:
        assert isinstance(tape, ast.Call)
        flag = next((each for each in tape.keywords if each.arg == "watch_accessed_variables"), None)
        if flag is not None:
            cost = "The tape records what every variable needs, which takes memory."
            yield from candidates(cost, _without_argument(code, tape, flag))
    if not all(group.trace.variables[number].computed for number in group.variables):
        return
    for block in _tape_blocks(place):
        name = _tape_name(block)
        sources = [each for each in group.names if each.isidentifier()]
        if name and len(sources) == len(group.names) and block.body and code.starts_a_line(block.body[0]):
            lines = [f"{name}.watch({each})" for each in sources]
            yield from candidates(_NOTHING, place.draft().insert_before(block.body[0], *lines).edit())


def _without_argument(code: Code, call: ast.Call, argument: ast.keyword) -> Edit | None:
    listed = [*call.args, *call.keywords]
    place = listed.index(argument)
    start, end = code.span(argument)
    if place > 0:
        start = code.span(listed[place - 1])[1]
    elif len(listed) > 1:
        end = code.span(listed[1])[0]
    return Draft(code).replace_between(start, end, "").edit()


def forward_pass_inside(group: Group) -> Iterator[Candidate]:
    """The statements that compute the loss, moved into the tape's block."""
    place = _request(group)
    if place is None:
        return
    code, topology = place.code, group.suspect.topology
    lines = set()
    for variable in group.variables:
        for reader in topology.readers[variable]:
            way = topology.influence(group.suspect.target).from_op(reader) if group.suspect.target >= 0 else ()
            for op in (reader, *way):
                number = group.trace.ops[op].source
                if number is not None and group.trace.sources[number].file == place.source.file:
                    lines.add(group.trace.sources[number].line)
    target = group.trace.targets[group.suspect.target] if group.suspect.target >= 0 else None
    for block in _tape_blocks(place):
        listed = code.block(block)
        here = listed.index(block)
        before = [index for index in range(here) if _holds(code, listed[index], lines)]
        before = before or _calls_that_feed(listed[:here], block, place.modules)
        asking = next((index for index, each in enumerate(listed) if _holds(code, each, {place.source.line})), here)
        after = [index for index in range(here + 1, asking) if _holds(code, listed[index], lines)]
        if target is not None and (before or after):
            first = listed[before[0] : here] if before else []
            last = listed[here + 1 : after[-1] + 1] if after else []
            yield from candidates(_NOTHING, _moved_inside(code, block, first, last))
            yield from candidates(_TWICE, _again_inside(code, block, [listed[index] for index in before]))
            return


_TWICE = "It is computed twice."


def _again_inside(code: Code, block: ast.With, before: list[ast.stmt]) -> Edit | None:
    """What the block reads, computed again at its beginning: others, such as another tape, use it in front of it."""
    given = [each for each in before if isinstance(each, ast.Assign) and not _takes_a_gradient(each)]
    if not given or not code.starts_a_line(block.body[0]):
        return None
    return Draft(code).insert_before(block.body[0], *map(ast.unparse, given)).edit()


def _takes_a_gradient(statement: ast.stmt) -> bool:
    """Whether a statement uses up a tape, so that it cannot be run again."""
    return any(isinstance(node, ast.Call) and name_of(node.func) == "gradient" for node in ast.walk(statement))


def _calls_that_feed(before: list[ast.stmt], block: ast.With, modules: Mapping[str, str]) -> list[int]:
    """The statements in front of a tape's block that call the user's own functions or models for what the block reads:
    their lines are not those of the ops that they make."""
    read, found = _read(block.body), []
    for index in reversed(range(len(before))):
        statement = before[index]
        if not isinstance(statement, ast.Assign) or read.isdisjoint(_given(statement)):
            continue
        calls = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
        own = [each for each in calls if ast.unparse(each.func).partition(".")[0] not in (*modules, *_DATA)]
        if own:
            found.append(index)
            read |= _read([statement])
    return sorted(found)


# Python's own functions that fetch a batch.
_DATA = ("next", "iter", "zip", "enumerate", "range", "len", "list", "tuple", "dict", "float", "int", "isinstance")


def _read(statements: list[ast.stmt]) -> set[str]:
    parts = [node for statement in statements for node in ast.walk(statement)]
    return {node.id for node in parts if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _given(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _holds(code: Code, statement: ast.stmt, lines: set[int]) -> bool:
    offset = code.passage.line - 1
    return any(statement.lineno + offset <= line <= (statement.end_lineno or 0) + offset for line in lines)


def _moved_inside(code: Code, block: ast.With, first: list[ast.stmt], last: list[ast.stmt]) -> Edit | None:
    if not all(code.starts_a_line(each) for each in (block, *first, *last, *block.body)):
        return None
    if any(isinstance(each, ast.With) for each in (*first, *last)):
        return None
    outer, inner = code.indentation(block), code.indentation(block.body[0])
    further = inner[len(outer) :]
    draft = Draft(code)
    lines = code.lines

    def moved(statements: list[ast.stmt]) -> list[str]:
        begin, end = statements[0].lineno - 1, statements[-1].end_lineno or statements[-1].lineno
        return [further + line if line.strip() else line for line in lines[begin:end]]

    head_end = block.body[0].lineno - 1
    begin = (first[0] if first else block).lineno - 1
    end = (last[-1] if last else block).end_lineno or block.lineno
    between = lines[block.end_lineno : last[0].lineno - 1] if last else []
    written = [
        *lines[block.lineno - 1 : head_end],
        *(moved(first) if first else []),
        *(lines[first[-1].end_lineno : block.lineno - 1] if first else []),
        *lines[head_end : block.end_lineno],
        *between,
        *(moved(last) if last else []),
    ]
    start = sum(len(line) + 1 for line in lines[:begin])
    stop = sum(len(line) + 1 for line in lines[:end]) - 1
    return draft.replace_between(start, stop, "\n".join(written)).edit()


def requested_too(group: Group) -> Iterator[Candidate]:
    """The variables added to those that the gradient is requested for, and applied to."""
    place = _request(group)
    if place is None:
        return
    code = place.code
    calls = [
        node
        for node in code.parts_at(place.source.line)
        if isinstance(node, ast.Call) and name_of(node.func) in ("gradient", "jacobian", "minimize", "gradients")
    ]
    names = [expression_of(place, name) for name in group.names]
    if len(calls) != 1 or None in names or len(calls[0].args) < 2:
        return
    asked = calls[0].args[1]
    missing = list(dict.fromkeys(each for each in names if each is not None))
    listed = [each for each in missing if not each.endswith("trainable_variables")]
    added = [each for each in missing if each not in listed] + ([f"[{', '.join(listed)}]"] if listed else [])
    draft = place.draft()
    for node in ast.walk(_function(place)):
        if isinstance(node, ast.expr) and code.written(node) == code.written(asked):
            if isinstance(asked, ast.Name) and isinstance(getattr(node, "ctx", None), ast.Store):
                return
            draft.replace(node, " + ".join([code.operand(node), *added]))
    yield from candidates("They are trained from now on.", draft.edit())


def not_stopped(group: Group) -> Iterator[Candidate]:
    """Without `stop_gradient`."""
    place = place_of_group(group)
    if place is None or place.call is None or place.subject is None or name_of(place.call.func) != "stop_gradient":
        return
    if isinstance(place.code.parent(place.call), ast.BinOp) and isinstance(place.subject, ast.BinOp):
        # `v + stop_gradient(q - v)` passes the gradient of `v`: without the stop it would be that of `q`.
        return
    cost = "The gradient passes through. If you stopped it on purpose, keep it and list the variables in `expected`."
    text = place.code.operand(place.subject)
    yield from candidates(cost, place.draft().replace(place.call, text).edit())


def _request(group: Group) -> Place | None:
    """Where the gradient is requested."""
    target = group.suspect.target
    number = group.trace.targets[target].source if target >= 0 else None
    return place_at(group, number) if number is not None else None


def _function(place: Place) -> ast.AST:
    statement = place.statement
    return (place.code.function(statement) if statement is not None else None) or place.code.tree


def _tape_blocks(place: Place) -> list[ast.With]:
    """The blocks of the tape that is asked, in the function of the request."""
    blocks = [
        node
        for node in ast.walk(_function(place))
        if isinstance(node, ast.With) and any(_is_tape(each.context_expr) for each in node.items)
    ]
    asked = {
        ast.unparse(node.func.value)
        for node in place.code.parts_at(place.source.line)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    line = place.source.line - place.code.passage.line + 1
    named = [block for block in blocks if _tape_name(block) in asked and block.lineno <= line]
    # Of several tapes of one name the last before the request is asked.
    return named[-1:] or (blocks if len(blocks) == 1 else [])


def _tape_name(block: ast.With) -> str:
    item = next(each for each in block.items if _is_tape(each.context_expr))
    return item.optional_vars.id if isinstance(item.optional_vars, ast.Name) else ""


def _is_tape(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) == "GradientTape"
