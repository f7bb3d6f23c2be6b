/** Which ops are in the body of a function, a loop or a branch, judging by their names: the trace has them inlined. */

import type {Op} from "../record.ts";

/** TensorFlow names a call after its op's type. */
const CALL = /(^|\/)(Stateful)?PartitionedCall(_\d+)?\//;

export function liesInFunction(ops: readonly Op[], index: number): boolean {
  const op = ops[index];
  // An output of a conditional is next to the branches; a variable of a loop is in the loop.
  const name = isBranching(op) ? bodyOf(op) : op.name;
  return CALL.test(op.name) || ops.some((each) => isControl(each) && name.startsWith(`${bodyOf(each)}/`));
}

function isControl(op: Op): boolean {
  return isBranching(op) || /^(Stateless)?While$/.test(op.type);
}

function isBranching(op: Op): boolean {
  return /^(Stateless)?(If|Case)$/.test(op.type);
}

/** The scope of the bodies that belong to one output of a conditional, or one variable of a loop. */
function bodyOf(op: Op): string {
  return op.name.replace(/\/(output|loop_variable)_\d+$/, "");
}
