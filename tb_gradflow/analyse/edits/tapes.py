"""Fixes of how a gradient is requested: what the tape records, and which sources it gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from tb_gradflow.analyse.evidence.requests import listed_in_vain
from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates
from tb_gradflow.analyse.user_code.code import Code, program_of
from tb_gradflow.analyse.user_code.definitions import expression_of
from tb_gradflow.analyse.user_code.draft import Draft, dissolved
from tb_gradflow.analyse.user_code.place import Place, place_at, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.python import argument_of, calls_within, name_of, names_bound, names_read, uses_of, values_of
from tb_gradflow.record.report import Edit

_NOTHING = "Nothing else changes."


def ignores_variables(suspect: Suspect) -> bool:
    """Whether the user's tape has `watch_accessed_variables=False`, and its block contains a line that reads the
    variable: for a tape that watches nothing at all, the trace does not show the reason."""
    trace, target = suspect.topology.trace, suspect.target
    number = trace.targets[target].source if target >= 0 else None
    source = trace.sources[number] if number is not None else None
    request = program_of(trace).statement_at(source.file, source.line) if source is not None else None
    if source is None or request is None:
        return False
    code, statement = request
    lines = {
        trace.sources[line].line
        for op in suspect.topology.readers[suspect.state.variable]
        if (line := trace.ops[op].source) is not None and trace.sources[line].file == source.file
    }
    return any(
        isinstance(block, ast.With) and _has_flag(block) and _holds(code, block, lines)
        for block in ast.walk(code.function(statement) or code.tree)
    )


def _has_flag(block: ast.With) -> bool:
    return any(
        each.arg == "watch_accessed_variables" and isinstance(each.value, ast.Constant) and each.value.value is False
        for item in block.items
        if isinstance(item.context_expr, ast.Call) and _is_tape(item.context_expr)
        for each in item.context_expr.keywords
    )


def watching(group: Group) -> Iterator[Candidate]:
    """Makes the tape watch variables again, or the tensor for which the gradient is requested."""
    place = _request(group)
    if place is None:
        return
    code = place.code
    tapes = [node for node in ast.walk(_function(place)) if _is_tape(node)]
    for tape in tapes:
        assert isinstance(tape, ast.Call)
        flag = next((each for each in tape.keywords if each.arg == "watch_accessed_variables"), None)
        if flag is not None:
            cost = "The tape records the operations on every trainable variable, which takes memory."
            yield from candidates(cost, _without_argument(code, tape, flag))
    if not all(group.trace.variables[number].computed for number in group.variables):
        return
    if (instead := watched_instead(group)) is not None:
        asked, name = instead
        yield from candidates(f"The gradient is that for `{name}`.", place.draft().replace(asked, name).edit())
        return
    for block in _tape_blocks(place):
        name = _tape_name(block)
        sources = [each for each in group.names if each.isidentifier()]
        if name and len(sources) == len(group.names) and block.body and code.starts_a_line(block.body[0]):
            lines = [f"{name}.watch({each})" for each in sources]
            yield from candidates(_NOTHING, place.draft().insert_before(block.body[0], *lines).edit())


def watched_instead(group: Group) -> tuple[ast.expr, str] | None:
    """If nothing in the block of a tape uses the tensor for which its gradient is requested, and the block makes the
    tape watch another one: the argument of the request, and the name of that one."""
    place = _request(group)
    blocks = _tape_blocks(place) if place is not None else []
    if place is None or len(blocks) != 1:
        return None
    calls = [node for node in ast.walk(blocks[0]) if isinstance(node, ast.Call)]
    watched = [each.args[0] for each in calls if name_of(each.func) == "watch" and len(each.args) == 1]
    requests = [node for node in place.code.parts_at(place.source.line) if isinstance(node, ast.Call)]
    asked = [given for each in requests if (given := argument_of(each, 1, "sources")) is not None]
    if (
        len(watched) != 1
        or len(asked) != 1
        or not isinstance(watched[0], ast.Name)
        or not isinstance(asked[0], ast.Name)
    ):
        return None
    is_used = asked[0].id in {node.id for node in ast.walk(blocks[0]) if isinstance(node, ast.Name)}
    return None if is_used or list(group.names) != [asked[0].id] else (asked[0], watched[0].id)


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
    """Moves the statements that compute the loss into the tape's block."""
    place = _request(group)
    if place is None:
        return
    if given_to_minimize(group) is not None:
        yield from _computed_when_called(group, place)
        return
    code, lines = place.code, _lines_of_the_way(group, place)
    target = group.trace.targets[group.suspect.target] if group.suspect.target >= 0 else None
    pause = paused_block(group)
    if pause is not None:
        yield from candidates(_MEMORY, dissolved(code, pause))
        return
    reset = reset_of_the_tape(group)
    if reset is not None:
        yield from candidates(_MEMORY, _without_statement(code, reset))
        return
    for block in _tape_blocks(place):
        listed = code.block(block)
        here = listed.index(block)
        before = [index for index in range(here) if _holds(code, listed[index], lines)]
        before = before or _feeding(listed[:here], block, place)
        asking = next((index for index, each in enumerate(listed) if _holds(code, each, {place.source.line})), here)
        after = [index for index in range(here + 1, asking) if _holds(code, listed[index], lines)]
        if target is not None and (before or after):
            first = listed[before[0] : here] if before else []
            last = listed[here + 1 : after[-1] + 1] if after else []
            if not any(isinstance(each, _LOOPS) and _takes_a_gradient(each) for each in first):
                yield from candidates(_NOTHING, _moved_inside(code, block, first, last))
            if not any(isinstance(listed[index], _LOOPS) for index in before):
                yield from candidates(_TWICE, _again_inside(code, block, [listed[index] for index in before]))
            return
    yield from candidates(_NOTHING, _computed_in_the_block(group, place))


_LOOPS = (ast.For, ast.While)


def _feeding(before: list[ast.stmt], block: ast.With, place: Place) -> list[int]:
    """The statements before a tape's block that compute values which the block reads, also inside a loop."""
    calls = _calls_of_model(before, block, place)
    around = [index for index, each in enumerate(before) if not set(calls).isdisjoint(ast.walk(each))]
    return sorted({*_calls_that_feed(before, block, place), *around})


_MEMORY = "The tape also keeps the values of these lines, which takes memory."


def _lines_of_the_way(group: Group, place: Place) -> set[int]:
    """The lines of the place's file that compute the loss from the variables."""
    topology, target = group.suspect.topology, group.suspect.target
    lines = set()
    for variable in group.variables:
        for reader in topology.readers[variable]:
            way = topology.influence(target).from_op(reader) if target >= 0 else ()
            for op in (reader, *way):
                number = group.trace.ops[op].source
                if number is not None and group.trace.sources[number].file == place.source.file:
                    lines.add(group.trace.sources[number].line)
    return lines


def reset_of_the_tape(group: Group) -> ast.stmt | None:
    """`tape.reset()` inside the block of the tape, after a line that computes with the variables or calls a function
    or model of the user; None if there is none."""
    place = _request(group)
    blocks = _tape_blocks(place) if place is not None else []
    if place is None or len(blocks) != 1 or not (name := _tape_name(blocks[0])):
        return None
    return next((each for each in blocks[0].body[1:] if ast.unparse(each) == f"{name}.reset()"), None)


def _without_statement(code: Code, statement: ast.stmt) -> Edit | None:
    """Without a statement that is alone on its line, and the line."""
    line = statement.lineno - 1
    if statement.end_lineno != statement.lineno or code.lines[line].partition("#")[0].strip() != code.written(
        statement
    ):
        return None
    start = sum(len(each) + 1 for each in code.lines[:line])
    return Draft(code).replace_between(start, start + len(code.lines[line]) + 1, "").edit()


def computed_after(group: Group) -> tuple[str, int] | None:
    """The first statement after the tape's block that computes the loss from the variables, and the number of its
    line: the tape records nothing there. None if there is none, or if something before the block does so too."""
    place = _request(group)
    blocks = _tape_blocks(place) if place is not None else []
    if place is None or len(blocks) != 1:
        return None
    code, lines = place.code, _lines_of_the_way(group, place)
    listed = code.block(blocks[0])
    here = listed.index(blocks[0])
    if any(_holds(code, each, lines) for each in listed[:here]):
        return None
    asking = next((index for index, each in enumerate(listed) if _holds(code, each, {place.source.line})), here)
    after = listed[here + 1 : asking]
    found = next((each for each in after if _holds(code, each, lines) or _differentiates(group, each)), None)
    return _first_line(place, found) if found is not None else None


def _differentiates(group: Group, statement: ast.stmt) -> bool:
    """Whether a statement requests the gradient whose own gradient is requested afterwards."""
    target = group.trace.targets[group.suspect.target]
    if not isinstance(statement, ast.Assign) or target.op < 0 or not group.trace.ops[target.op].backward:
        return False
    value = statement.value
    names = [ast.unparse(each) for each in statement.targets]
    return target.name in names and isinstance(value, ast.Call) and name_of(value.func) in ("gradient", "jacobian")


def computed_in_the_request(group: Group) -> ast.expr | None:
    """The loss in `tape.gradient(tf.add_n(losses), …)`, if it is an expression and the request is outside of the
    tape's block; None if it is only a name, or one of its parts."""
    place = _request(group)
    blocks = _tape_blocks(place) if place is not None else []
    if place is None or len(blocks) != 1 or not place.code.starts_a_line(blocks[0].body[-1]):
        return None
    calls = [
        node
        for node in place.code.parts_at(place.source.line)
        if isinstance(node, ast.Call) and name_of(node.func) == "gradient"
    ]
    if len(calls) != 1 or calls[0] in ast.walk(blocks[0]):
        return None
    loss = argument_of(calls[0], 0, "target")
    return loss if isinstance(loss, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript)) else None


def _computed_in_the_block(group: Group, place: Place) -> Edit | None:
    """Computes the loss at the end of the tape's block instead of in the request."""
    loss, (block,) = computed_in_the_request(group), _tape_blocks(place) or (None,)
    if loss is None or block is None or "\n" in place.code.written(loss):
        return None
    draft = place.draft()
    name = draft.free_name(loss, "loss", "total_loss", "loss_value")
    return draft.insert_after(block.body[-1], f"{name} = {place.code.written(loss)}").replace(loss, name).edit()


def _first_line(place: Place, statement: ast.stmt) -> tuple[str, int]:
    written, _, _ = place.code.written(statement).partition("\n")
    return written, statement.lineno + place.code.passage.line - 1


def given_to_minimize(group: Group) -> ast.Lambda | None:
    """The function passed to `minimize`, if it only returns a loss that was computed before."""
    place = _request(group)
    calls = [
        node
        for node in (place.code.parts_at(place.source.line) if place is not None else ())
        if isinstance(node, ast.Call) and name_of(node.func) == "minimize"
    ]
    given = argument_of(calls[0], 0, "loss") if len(calls) == 1 else None
    if place is not None and isinstance(given, ast.Name):
        made = _assigned_in_file(given.id, place)
        given = made[0][1] if len(made) == 1 else None
    return (
        given
        if isinstance(given, ast.Lambda) and isinstance(given.body, ast.Name) and not _has_parameters(given)
        else None
    )


def _assigned_in_file(name: str, place: Place) -> list[tuple[Code, ast.expr]]:
    """What a name is set to, in the function of the place, or, if nothing there is, anywhere in its file."""
    here = [(place.code, value) for value in values_of(_function(place), name)]
    codes = place.program.of_file(place.source.file)
    return here or [(code, value) for code in codes for value in values_of(code.tree, name)]


def _has_parameters(function: ast.Lambda) -> bool:
    return bool(function.args.args or function.args.kwonlyargs or function.args.posonlyargs or function.args.vararg)


def _computed_when_called(group: Group, place: Place) -> Iterator[Candidate]:
    """`minimize(lambda: loss)`, with the loss computed in the lambda, or in a function that replaces it."""
    code, given = place.code, given_to_minimize(group)
    statement = place.statement
    if given is None or not isinstance(given.body, ast.Name) or statement is None or not code.starts_a_line(statement):
        return
    if given not in ast.walk(statement):
        yield from _computed_in_the_lambda(given, place)
        return
    listed = code.block(statement)
    before = listed[: listed.index(statement)]
    forward = _made_of_variables(group, place, before)
    needed = {given.body.id}
    steps: list[ast.stmt] = []
    for each in reversed(forward):
        if not needed.isdisjoint(names_bound(each)):
            steps.insert(0, each)
            needed |= names_read(each)
    if not steps or given.body.id not in names_bound(steps[-1]):
        return
    (*_, last) = steps
    if len(steps) == 1 and isinstance(last, ast.Assign):
        draft = place.draft().replace(given.body, code.operand(last.value))
        uses = uses_of(_function(place), given.body.id)
        yield from candidates(_TWICE if len(uses) > 2 else _TWICE_BEFORE, draft.edit())
        return
    if _reads_before_it_gives(steps):
        return
    name = code.free_name(given, "loss_of_step", "compute_loss")
    body = [f"    {line}" for each in steps for line in ast.unparse(each).split("\n")]
    draft = place.draft().insert_before(statement, f"def {name}():", *body, f"    return {given.body.id}", "")
    yield from candidates(_TWICE, draft.replace(given, name).edit())


def _computed_in_the_lambda(given: ast.Lambda, place: Place) -> Iterator[Candidate]:
    """The same for a lambda with a name, if one statement computes its loss from the variables themselves."""
    assert isinstance(given.body, ast.Name)
    codes = [place.code, *place.program.of_file(place.source.file)]
    code = next(each for each in codes if given in ast.walk(each.tree))
    losses = _assigned_in_file(given.body.id, place)
    changes = [each for part in codes for each in ast.walk(part.tree) if isinstance(each, ast.AugAssign)]
    if len(losses) != 1 or any(ast.unparse(each.target) == given.body.id for each in changes):
        return
    [(passage, loss)] = losses
    read = {ast.unparse(each) for each in ast.walk(loss) if isinstance(each, (ast.Name, ast.Attribute))}
    if all(expression_of(place, name) in read for name in place.group.names):
        written = passage.written(loss)
        written = f"({written})" if "\n" in written else written
        yield from candidates(_TWICE_BEFORE, Draft(code).replace(given.body, written).edit())


_TWICE_BEFORE = "As long as the earlier statement remains, the loss is computed twice."


def _made_of_variables(group: Group, place: Place, before: list[ast.stmt]) -> list[ast.stmt]:
    """The assignments, among these statements, that compute with the variables."""
    lines, tainted = _lines_that_read(group, place), set[str]()
    found: list[ast.stmt] = []
    calls = _calls_of_own(before, place.modules)
    for each in before:
        if not isinstance(each, ast.Assign) or _takes_a_gradient(each):
            continue
        if _holds(place.code, each, lines) or not tainted.isdisjoint(names_read(each)) or each in calls:
            tainted |= names_bound(each)
            found.append(each)
    return found


def _calls_of_own(statements: list[ast.stmt], modules: Mapping[str, str]) -> list[ast.stmt]:
    """The statements that call the user's own functions or models: the ops that these create have other lines."""
    return [each for each in statements if any(_is_own(call, modules) for call in calls_within(each))]


def _is_own(call: ast.Call, modules: Mapping[str, str]) -> bool:
    """Whether it may call one of the user's own functions or models: not a function of a module, and not a method of a
    value that is computed in the same expression, as in `(x - m).tolist()`."""
    node: ast.AST = call.func
    if isinstance(node, ast.Attribute) and node.attr in _OF_VALUES:
        return False
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id not in (*modules, *_DATA)


# Methods of a value, which return it in another form.
_OF_VALUES = ("numpy", "item", "tolist", "astype", "copy", "items", "keys", "values")


def _reads_before_it_gives(steps: list[ast.stmt]) -> bool:
    """Whether a function would read a name from its enclosing scope before assigning its own value to it."""
    all_bound = names_bound(*steps)
    known: set[str] = set()
    for each in steps:
        if not (names_read(each) & all_bound) <= known:
            return True
        known |= names_bound(each)
    return False


def computed_before(group: Group) -> tuple[str, int, bool] | None:
    """The statement that computes what the tape's block reads, or the loss itself, before the block opens: its first
    line, that line's number in the file, and whether it is in a loop before the block. None if there is none."""
    place = _request(group)
    blocks = _tape_blocks(place) if place is not None else []
    if place is None or len(blocks) != 1:
        return None
    listed = place.code.block(blocks[0])
    before = listed[: listed.index(blocks[0])]
    # The call of the model itself is better evidence than that of any other object.
    found = _calls_of_model(before, blocks[0], place)
    found = found or [before[index] for index in _calls_that_feed(before, blocks[0], place)]
    if not found or any(_takes_a_gradient(each) for each in found):
        return None
    return (*_first_line(place, found[-1]), found[-1] not in before)


def _calls_of_model(before: list[ast.stmt], block: ast.With, place: Place) -> list[ast.stmt]:
    """The call of the model whose variables the request lists, if the block reads what it has returned: also from
    lists, to which a loop before the block has appended it."""
    lists = [node for node in place.code.parts_at(place.source.line) if isinstance(node, ast.Attribute)]
    models = {ast.unparse(node.value) for node in lists if node.attr in _LISTS}
    read = names_read(*block.body) | _loss_made_elsewhere(block, place)
    parts = [node for statement in before for node in ast.walk(statement) if isinstance(node, (ast.Assign, ast.Expr))]
    for statement in sorted(parts, key=lambda each: -each.lineno):
        if read.isdisjoint(_filled(statement) if isinstance(statement, ast.Expr) else names_bound(statement)):
            continue
        calls = [ast.unparse(call.func) for call in calls_within(statement)]
        if isinstance(statement, ast.Assign) and not models.isdisjoint(calls):
            return [statement]
        read |= names_read(statement)
    return []


def _filled(statement: ast.Expr) -> set[str]:
    """The list to which a statement appends something."""
    call = statement.value
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        return {call.func.value.id} if call.func.attr in ("append", "extend", "insert") else set()
    return set()


def computed_outside(group: Group) -> tuple[str, int, bool] | None:
    """The one-line statement next to the block of the only tape that is used, which computes with the variables: its
    code, its line in the file, and whether the block reads what it gives; `None` if there is none, or several."""
    place = _request(group)
    blocks = _tape_blocks(place) if place is not None else []
    if place is None or len(blocks) != 1:
        return None
    code, lines, inside = place.code, _lines_that_read(group, place), set(ast.walk(blocks[0]))
    found: list[ast.stmt] = [
        node
        for node in ast.walk(_function(place))
        if isinstance(node, ast.Assign) and node not in inside and _holds(code, node, lines)
    ]
    if not found:
        # A model's own lines read its variables.
        listed = code.block(blocks[0])
        before = listed[: listed.index(blocks[0])]
        found = [before[index] for index in _calls_that_feed(before, blocks[0], place)]
    if len(found) != 1 or "\n" in code.written(found[0]):
        return None
    read = names_read(*blocks[0].body) | _loss_made_elsewhere(blocks[0], place)
    return (*_first_line(place, found[0]), not read.isdisjoint(names_bound(found[0])))


def _lines_that_read(group: Group, place: Place) -> set[int]:
    """The lines of the place's file that read the variables."""
    numbers = {group.trace.ops[op].source for each in group.variables for op in group.suspect.topology.readers[each]}
    sources = [group.trace.sources[number] for number in numbers if number is not None]
    return {each.line for each in sources if each.file == place.source.file}


def paused_block(group: Group) -> ast.With | None:
    """The block of `tape.stop_recording()` in which the forward pass runs; `None` if it does not."""
    place = _request(group)
    if place is None:
        return None
    lines = _lines_that_read(group, place)
    for node in ast.walk(_function(place)):
        if isinstance(node, ast.With) and len(node.items) == 1 and _holds(place.code, node, lines):
            given = node.items[0].context_expr
            if isinstance(given, ast.Call) and name_of(given.func) == "stop_recording":
                return node
    return None


_TWICE = "These values are computed twice."


def _again_inside(code: Code, block: ast.With, before: list[ast.stmt]) -> Edit | None:
    """Computes the values that the block reads again at its beginning: other code before it, such as another tape, uses
    them too."""
    given = [each for each in before if isinstance(each, ast.Assign) and not _takes_a_gradient(each)]
    if not given or not code.starts_a_line(block.body[0]):
        return None
    return Draft(code).insert_before(block.body[0], *map(ast.unparse, given)).edit()


def _takes_a_gradient(statement: ast.stmt) -> bool:
    """Whether a statement consumes a tape, so that it cannot be run again."""
    return bool(calls_within(statement, "gradient"))


def _calls_that_feed(before: list[ast.stmt], block: ast.With, place: Place) -> list[int]:
    """The statements before a tape's block that compute values which the block reads, or the loss itself: with the
    variables, as they are called in the user's code, or by calls of the user's own functions or models. The ops that
    these create have other lines, or were not observed."""
    found: list[int] = []
    read = names_read(*block.body) | _loss_made_elsewhere(block, place)
    names = {name.rpartition("/")[2] for name in place.group.names}
    for index in reversed(range(len(before))):
        statement = before[index]
        if not isinstance(statement, ast.Assign) or read.isdisjoint(names_bound(statement)):
            continue
        calls = calls_within(statement.value)
        if any(_is_own(each, place.modules) for each in calls) or not names.isdisjoint(names_read(statement)):
            found.append(index)
            read |= names_read(statement)
    return sorted(found)


def _loss_made_elsewhere(block: ast.With, place: Place) -> set[str]:
    """The name of the loss whose gradient is requested, if the block does not assign it."""
    given = {name for each in block.body for name in names_bound(each)}
    calls = [node for node in place.code.parts_at(place.source.line) if isinstance(node, ast.Call)]
    losses = [argument_of(node, 0, "target") for node in calls if name_of(node.func) == "gradient"]
    return {each.id for each in losses if isinstance(each, ast.Name) and each.id not in given}


# Python's own functions that fetch a batch.
_DATA = ("next", "iter", "zip", "enumerate", "range", "len", "list", "tuple", "dict", "float", "int", "isinstance")


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
    """Adds the variables to those for which the gradient is requested and applied."""
    place, added = _request(group), _added(group)
    asked = _asked(place) if place is not None else None
    if place is None or asked is None or not added or listed_in_vain(group.suspect.topology, group.suspect.target):
        return
    code, draft = place.code, place.draft()
    function = _function(place)
    same = [
        node for node in ast.walk(function) if isinstance(node, ast.expr) and code.written(node) == code.written(asked)
    ]
    requests = calls_within(function, "gradient")
    if sum(not set(same).isdisjoint(node.args) for node in requests) > 1:
        return  # another loss has the same list
    given = [node for node in same if isinstance(getattr(node, "ctx", None), ast.Store)]
    if given:
        statement = code.parent(given[0])
        if len(given) != 1 or not isinstance(statement, ast.Assign) or statement.targets != given:
            return
        draft.replace(statement.value, _joined(code, statement.value, added))
    else:
        for node in same:
            draft.replace(node, _joined(code, node, added))
    yield from candidates("These variables will be trained.", draft.edit())


def wider_request(group: Group) -> str | None:
    """The request as the user wrote it, with the missing variables; `None` if their names are not known."""
    place, added = _request(group), _added(group)
    asked = _asked(place) if place is not None else None
    call = place.code.parent(asked) if place is not None and asked is not None else None
    if place is None or asked is None or not isinstance(call, ast.Call) or not added:
        return None
    written = place.code.written(call)
    if "\n" in written:
        return None
    return written.replace(place.code.written(asked), _joined(place.code, asked, added), 1)


def _joined(code: Code, asked: ast.expr, added: Sequence[str]) -> str:
    """A list of the variables: what is a tuple cannot be added to a list."""
    given = [code.written(each) for each in asked.elts] if isinstance(asked, ast.List) else [f"*{code.operand(asked)}"]
    return f"[{', '.join([*given, *added])}]"


# What their second argument is called.
_SOURCES = {"gradient": "sources", "jacobian": "sources", "minimize": "var_list", "gradients": "xs"}


def _asked(place: Place) -> ast.expr | None:
    """The list of variables for which the gradient is requested; `None` if that is not a list, but a single one."""
    calls = [
        node
        for node in place.code.parts_at(place.source.line)
        if isinstance(node, ast.Call) and name_of(node.func) in _SOURCES
    ]
    asked = argument_of(calls[0], 1, _SOURCES[name_of(calls[0].func)]) if len(calls) == 1 else None
    number = place.group.suspect.target
    several = (place.group.trace.targets[number].sources or 0) > 1
    return asked if asked is not None and (several or _is_list(asked, place)) else None


_LISTS = ("trainable_variables", "trainable_weights", "variables", "weights")


def _is_list(node: ast.expr, place: Place) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_list(node.left, place) or _is_list(node.right, place)
    if isinstance(node, ast.Name):
        given = values_of(_function(place), node.id) or [
            value for code in place.program.of_file(place.source.file) for value in values_of(code.tree, node.id)
        ]
        return len(given) == 1 and not isinstance(given[0], ast.Name) and _is_list(given[0], place)
    named = isinstance(node, ast.Attribute) and node.attr in _LISTS
    called = isinstance(node, ast.Call) and name_of(node.func) in ("list", "sum", *_LISTS)
    return named or called or isinstance(node, (ast.List, ast.ListComp))


def _added(group: Group) -> list[str]:
    """The missing variables in the user's code, as elements of a list; empty if one has no known name."""
    place = _request(group)
    names = [expression_of(place, name) for name in group.names] if place is not None else [None]
    if None in names:
        return []
    missing = list(dict.fromkeys(each for each in names if each is not None))
    return [f"*{each}" if each.endswith("trainable_variables") else each for each in missing]


def not_stopped(group: Group) -> Iterator[Candidate]:
    """Removes `stop_gradient`."""
    place = place_of_group(group)
    if place is None:
        return
    if place.call is None and (mapped := _mapped_stop(place)) is not None:
        passed = place.code.operand(mapped.args[1])
        yield from candidates(_NOT_STOPPED, place.draft().replace(mapped, passed).edit())
    if place.call is None or place.subject is None or name_of(place.call.func) != "stop_gradient":
        return
    if isinstance(place.code.parent(place.call), ast.BinOp) and isinstance(place.subject, ast.BinOp):
        # `v + stop_gradient(q - v)` passes the gradient of `v`: without the stop it would be that of `q`.
        return
    cost = _NOT_STOPPED
    text, statement = place.code.operand(place.subject), place.statement
    is_whole = isinstance(statement, ast.Assign) and statement.value is place.call
    targets = [place.code.written(each) for each in statement.targets] if isinstance(statement, ast.Assign) else []
    if statement is not None and is_whole and targets == [text] and len(place.code.block(statement)) > 1:
        yield from candidates(cost, _without_statement(place.code, statement))
    yield from candidates(cost, place.draft().replace(place.call, text).edit())


_NOT_STOPPED = (
    "The gradient passes through. If you stopped it on purpose, keep it and list the variables in `expected`."
)


def _mapped_stop(place: Place) -> ast.Call | None:
    """The only call on the line that applies `stop_gradient` to each part of a structure, as `map_structure` does."""
    found = [
        part
        for part in place.code.parts_at(place.source.line)
        if isinstance(part, ast.Call) and name_of(part.func) in ("map_structure", "map") and len(part.args) == 2
        if name_of(part.args[0]) == "stop_gradient" and not part.keywords
    ]
    return found[0] if len(found) == 1 else None


def _request(group: Group) -> Place | None:
    """Where the gradient is requested."""
    target = group.suspect.target
    number = group.trace.targets[target].source if target >= 0 else None
    return place_at(group, number) if number is not None else None


def _function(place: Place) -> ast.AST:
    statement = place.statement
    return (place.code.function(statement) if statement is not None else None) or place.code.tree


def _tape_blocks(place: Place) -> list[ast.With]:
    """The blocks of the tape whose gradient is requested, in the function of the request."""
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
    # If several tapes have the same name, the last one before the request is meant.
    return named[-1:] or (blocks if len(blocks) == 1 else [])


def _tape_name(block: ast.With) -> str:
    item = next(each for each in block.items if _is_tape(each.context_expr))
    return item.optional_vars.id if isinstance(item.optional_vars, ast.Name) else ""


def _is_tape(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) == "GradientTape"
