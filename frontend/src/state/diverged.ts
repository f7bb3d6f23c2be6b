/** Where the shown run and the compared one differ first: found by the server when the reader wants to know. */

import type {Divergence} from "../api/routes.ts";
import type {Source} from "../api/source.ts";

export class Diverged {
  readonly #source: Source;
  readonly #changed: () => void;
  #pair = "";
  /** Null while it was not looked for. */
  found: Divergence | null = null;
  /** A message that says why it is not known. */
  problem = "";
  isLooking = false;

  constructor(source: Source, changed: () => void) {
    this.#source = source;
    this.#changed = changed;
  }

  /** What is known of other runs is forgotten. */
  show(before: string | null, now: string | null): void {
    const pair = `${before}\n${now}`;
    if (pair !== this.#pair) {
      this.#pair = pair;
      [this.found, this.problem, this.isLooking] = [null, "", false];
    }
  }

  /** Reads both runs up to their first difference. */
  async look(before: string, now: string): Promise<void> {
    this.show(before, now);
    const [pair, asked] = [this.#pair, this.isLooking ? null : this.#source.divergence(before, now)];
    if (asked === null) {
      return;
    }
    this.isLooking = true;
    this.#changed();
    const [found, problem] = await asked.then(
      (answer): [Divergence, string] => [answer, ""],
      (error: unknown): [null, string] => [null, error instanceof Error ? error.message : String(error)],
    );
    if (pair === this.#pair) {
      [this.found, this.problem, this.isLooking] = [found, problem, false];
      this.#changed();
    }
  }
}
