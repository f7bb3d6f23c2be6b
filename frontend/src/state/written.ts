/** Keeps the address of the page as the page is. */

import {writePlace, type Place} from "../host/address.ts";
import type {State} from "./state.ts";
import {placeOf, type View} from "./view.ts";

/** Milliseconds that a step has to stay before the address says it: browsers count how often that is changed. */
const REST = 150;

export class Written {
  readonly #start: View;
  /** What the address says; null before anything was written there. */
  #place: Place | null = null;
  #waiting = 0;

  /** `start`: how a run is looked at if the address has no word on it. */
  constructor(start: View) {
    this.#start = start;
  }

  /** The address was changed by somebody else: what comes next is no step of the reader's. */
  forget(): void {
    this.#cancel();
    this.#place = null;
  }

  /** Another step replaces what the address says; anything else is a step that can be taken back. */
  write({overview, run, at}: State, view: View): void {
    if (overview === null) {
      return;
    }
    const last = at === overview.steps.length - 1;
    const step = last || at < 0 ? undefined : String(overview.steps[at]);
    const place: Place = {run: run ?? "", step, ...placeOf(view, this.#start)};
    const before = this.#place;
    const changed = before !== null && Object.keys(place).some((name) => name !== "step" && place[name] !== before[name]);
    this.#place = place;
    if (changed || before === null) {
      this.#cancel();
      writePlace(place, changed);
    } else if (place.step !== before.step) {
      this.#cancel();
      this.#waiting = window.setTimeout(() => {
        this.#waiting = 0;
        writePlace(place, false);
      }, REST);
    } else if (this.#waiting === 0) {
      writePlace(place, false);
    }
  }

  #cancel(): void {
    clearTimeout(this.#waiting);
    this.#waiting = 0;
  }
}
