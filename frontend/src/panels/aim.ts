/** Selects which of several losses is shown. */

import {inOrder} from "../model/findings.ts";
import type {State} from "../state/state.ts";

export class Aim {
  #aimed = "";

  /**
   * The requested target, if the trace has it. Otherwise, once for each recording, the target of the worst finding:
   * with another one the graph would show nothing of the findings.
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
