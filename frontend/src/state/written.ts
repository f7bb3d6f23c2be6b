/** Keeps the address of the page up to date with its view. */

import {writePlace, type Place} from "../host/address.ts";
import type {State} from "./state.ts";
import {placeOf, type View} from "./view.ts";

/** Milliseconds that a step must stay before the address contains it: browsers limit how often that may change. */
const REST = 150;

export class Written {
  readonly #start: View;
  /** The view in the address; null before anything was written there. */
  #place: Place | null = null;
  #waiting = 0;

  /** `start`: the view of a run if the address does not contain one. */
  constructor(start: View) {
    this.#start = start;
  }

  /** The address was changed from outside: the next change is not a step of the reader's. */
  forget(): void {
    this.#cancel();
    this.#place = null;
  }

  /** Another step replaces the address; anything else is a step that can be undone with the back button. */
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
