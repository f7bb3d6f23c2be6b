/** Which of several losses is shown. */

import {inOrder} from "../model/findings.ts";
import type {State} from "../state/state.ts";

export class Aim {
  #aimed = "";

  /**
   * The target that was asked for by its name, if the trace has it. Else, once for each recording, the one that the
   * worst finding is about: with another the graph would show nothing of what the findings say.
   */
  target({trace, target, diagnosis, overview}: State, name: string): number {
    const named = trace?.targets.findIndex((each) => each.name === name) ?? -1;
    if (trace === null || named >= 0) {
      return named >= 0 ? named : target;
    }
    const session = `${overview?.run} ${overview?.session.id}`;
    if (diagnosis === null || diagnosis.trace !== trace.index || this.#aimed === session) {
      return target;
    }
    this.#aimed = session;
    const worst = inOrder(diagnosis.findings).find(({severity}) => severity !== "info");
    return worst !== undefined && worst.target in trace.targets ? worst.target : target;
  }
}
