/** The slider over the recorded steps. */

import {css, html, LitElement, type TemplateResult} from "lit";
import {formatCount, formatNumber} from "../model/format.ts";
import {shared} from "./styles.ts";

export class StepSlider extends LitElement {
  static override properties = {steps: {attribute: false}, at: {attribute: false}, loss: {attribute: false}};
  declare steps: readonly number[];
  declare at: number;
  /** Undefined where there is no step; null where it was not finite. */
  declare loss: number | null | undefined;

  static override styles = [
    shared,
    css`
      :host {
        display: flex;
        align-items: center;
        gap: 8px;
        min-width: 0;
      }
      input {
        flex: 1;
        min-width: 60px;
        accent-color: var(--gf-accent);
      }
      button {
        padding: 1px 7px;
      }
      output {
        white-space: nowrap;
        min-width: 84px;
      }
      .loss {
        min-width: 92px;
      }
      b {
        font-weight: 600;
      }
    `,
  ];

  constructor() {
    super();
    this.steps = [];
    this.at = -1;
    this.loss = undefined;
  }

  override render(): TemplateResult {
    const step = this.steps[this.at];
    const last = this.steps.length - 1;
    const said = step === undefined ? "no step yet" : `step ${step}`;
    return html`
      <output class="number"><span class="muted">Step</span> <b>${step === undefined ? "–" : formatCount(step)}</b></output>
      <button class="quiet" aria-label="Previous recorded step" title="Previous step ([)" ?disabled=${this.at <= 0} @click=${() => this.#go(this.at - 1)}>◂</button>
      <input
        type="range"
        aria-label="Recorded step"
        aria-valuetext=${said}
        min="0"
        max=${Math.max(0, last)}
        .value=${String(Math.max(0, this.at))}
        ?disabled=${last <= 0}
        @input=${(event: Event) => this.#go(Number((event.target as HTMLInputElement).value))}
      />
      <button class="quiet" aria-label="Next recorded step" title="Next step (])" ?disabled=${this.at >= last} @click=${() => this.#go(this.at + 1)}>▸</button>
      <output class="number loss"><span class="muted">Loss</span> <b>${this.#loss()}</b></output>
    `;
  }

  #loss(): string {
    return this.loss === null ? "not finite" : formatNumber(this.loss);
  }

  #go(at: number): void {
    this.dispatchEvent(new CustomEvent<number>("gf-step", {detail: at}));
  }
}

customElements.define("gf-steps", StepSlider);
