/** Plays the recorded steps one after the other. */

import type {Store} from "./store.ts";

/** Minimum milliseconds for which a step is shown. */
const PACE = 220;
/** However many steps there are, playing shows about this many. */
const LOOKS = 120;

export class Player {
  readonly #store: Store;
  readonly #changed: () => void;
  #turn = 0;
  #playing = false;

  constructor(store: Store, changed: () => void) {
    this.#store = store;
    this.#changed = changed;
  }

  get isPlaying(): boolean {
    return this.#playing;
  }

  toggle(): void {
    if (this.#playing) {
      this.stop();
    } else {
      void this.#play();
    }
  }

  stop(): void {
    this.#turn += 1;
    this.#playing = false;
    this.#changed();
  }

  /** From the chosen step to the last; from the beginning if the last one is chosen. */
  async #play(): Promise<void> {
    this.#turn += 1;
    const turn = this.#turn;
    const {overview, at} = this.#store.state;
    const last = (overview?.steps.length ?? 0) - 1;
    const stride = Math.max(1, Math.floor(last / LOOKS));
    this.#playing = last > 0;
    this.#changed();
    for (let next = at >= last ? 0 : at + stride; turn === this.#turn && next <= last; next = next === last ? last + 1 : Math.min(last, next + stride)) {
      await Promise.all([this.#store.chooseStep(next), new Promise((resolve) => setTimeout(resolve, PACE))]);
      if (this.#store.state.overview?.run !== overview?.run) {
        break;
      }
    }
    if (turn === this.#turn) {
      this.stop();
    }
  }
}
