/** The slider over the recorded steps, the loss along it, marks where findings begin, and a play button. */

import {html, LitElement, nothing, svg, type TemplateResult} from "lit";
import type {Course} from "../api/routes.ts";
import {formatCount, formatNumber} from "../model/format.ts";
import {mayGoOn} from "../model/runs.ts";
import {beginningsIn, lossCurve, type Beginning, type LossCurve} from "../model/timeline.ts";
import {SEVERITY} from "../model/words.ts";
import {given} from "./given.ts";
import {shared} from "./styles.ts";
import {timelineStyles} from "./timeline_styles.ts";

/** Milliseconds between two looks at the clock. */
const TICK = 10_000;

export class Timeline extends LitElement {
  static override properties = given("steps", "losses", "recorded", "at", "course", "playing");
  declare steps: readonly number[];
  /** For each step; null if not finite, undefined if the step has none. */
  declare losses: readonly (number | null | undefined)[];
  /** When the last step was recorded, in seconds; null if there will be no more steps. */
  declare recorded: number | null;
  declare at: number;
  declare course: Course | null;
  declare playing: boolean;

  #curve: LossCurve = {lines: [], gaps: []};
  #beginnings: readonly Beginning[] = [];
  #clock = 0;

  static override styles = [shared, timelineStyles];

  constructor() {
    super();
    [this.steps, this.losses, this.at, this.course, this.playing] = [[], [], -1, null, false];
    this.recorded = null;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    // Nothing else happens when a training has ended.
    this.#clock = window.setInterval(() => this.requestUpdate(), TICK);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.#clock);
  }

  override willUpdate(changed: Map<PropertyKey, unknown>): void {
    if (changed.has("losses")) {
      this.#curve = lossCurve(this.losses);
    }
    if (changed.has("course") || changed.has("steps")) {
      this.#beginnings = beginningsIn(this.course, this.steps);
    }
  }

  override render(): TemplateResult {
    const step = this.steps[this.at];
    const last = this.steps.length - 1;
    const shown = step === undefined ? "–" : formatCount(step);
    return html`
      <button class="quiet" aria-label=${this.playing ? "Stop" : "Play the steps"} title="Play or stop the recorded steps (Space)" ?disabled=${last <= 0} @click=${() => this.#tell("gf-play", 0)}>
        ${this.playing ? "❚❚" : "►"}
      </button>
      <button class="quiet" aria-label="Previous recorded step" title="Previous step ([)" ?disabled=${this.at <= 0} @click=${() => this.#go(this.at - 1)}>◂</button>
      <div class="track">
        ${this.#picture()} ${this.#beginnings.map((each) => this.#mark(each, last))}
        <input
          type="range"
          aria-label="Recorded step"
          aria-valuetext=${step === undefined ? "no step yet" : `step ${step}`}
          min="0"
          max=${Math.max(0, last)}
          .value=${String(Math.max(0, this.at))}
          ?disabled=${last <= 0}
          @input=${(event: Event) => this.#go(Number((event.target as HTMLInputElement).value))}
        />
      </div>
      <button class="quiet" aria-label="Next recorded step" title="Next step (])" ?disabled=${this.at >= last} @click=${() => this.#go(this.at + 1)}>▸</button>
      ${this.#running()}
      <output class="number"><span class="muted">Step</span> <b>${shown}</b></output>
      <output class="number loss"><span class="muted">Loss</span> <b>${this.#loss()}</b></output>
    `;
  }

  #running(): TemplateResult | typeof nothing {
    const now = Date.now() / 1000;
    if (this.recorded === null || !mayGoOn(this.recorded, now)) {
      return nothing;
    }
    const ago = Math.round(Math.max(0, now - this.recorded));
    return html`<span class="running" title="The last step was recorded ${ago} s ago: the training may still be running.">● ${ago} s ago</span>`;
  }

  #picture(): TemplateResult | typeof nothing {
    const {lines, gaps} = this.#curve;
    if (lines.length === 0 && gaps.length === 0) {
      return nothing;
    }
    const points = (line: readonly number[]): string =>
      line.map((value, index) => (index % 2 === 0 ? 1000 * value : 100 - 100 * value).toFixed(1)).join(" ");
    return html`<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label="The loss over the recorded steps">
      ${lines.map((line) => svg`<polyline points=${points(line)} />`)}
      ${gaps.map((x) => svg`<line x1=${1000 * x} x2=${1000 * x} y1="0" y2="100" />`)}
    </svg>`;
  }

  #mark({at, step, severity, causes}: Beginning, last: number): TemplateResult {
    const words = `${SEVERITY[severity].one} from step ${step} on: ${causes.join(", ")}`;
    return html`<button
      class="mark ${severity}"
      style="left:calc(8px + (100% - 16px) * ${last <= 0 ? 0 : at / last})"
      title=${words}
      aria-label=${words}
      @click=${() => this.#go(at)}
    >${SEVERITY[severity].icon}</button>`;
  }

  #loss(): string {
    const loss = this.losses[this.at];
    return loss === null ? "not finite" : formatNumber(loss);
  }

  #go(at: number): void {
    this.#tell("gf-step", at);
  }

  #tell(name: string, detail: number): void {
    this.dispatchEvent(new CustomEvent<number>(name, {detail}));
  }
}

customElements.define("gf-timeline", Timeline);
