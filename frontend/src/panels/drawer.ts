/** The drawer at the bottom: its handle, how many variables are in trouble, and the table. */

import {html, nothing, type TemplateResult} from "lit";
import {formatCount} from "../model/format.ts";
import {isTroubled, type Row} from "../model/rows.ts";
import "./variables.ts";

export interface Drawer {
  readonly rows: readonly Row[];
  readonly unfolded: boolean;
  /** Whether only variables without a usable gradient are wanted. */
  readonly onlyTroubled: boolean;
  /** Index of the selected variable; -1 for none. */
  readonly selected: number;
}

export interface DrawerActions {
  fold(): void;
  toggleTroubled(): void;
  choose(variable: number): void;
}

export function drawer({rows, unfolded, onlyTroubled, selected}: Drawer, actions: DrawerActions): TemplateResult {
  const troubled = rows.filter(isTroubled).length;
  return html`<section class="drawer ${unfolded ? "unfolded" : ""}" aria-label="Variables">
    <div class="handles">
      <button class="handle" aria-expanded=${String(unfolded)} @click=${() => actions.fold()}>
        <span aria-hidden="true">${unfolded ? "▾" : "▸"}</span> Variables <span class="muted number">${formatCount(rows.length)}</span>
      </button>
      ${troubled === 0
        ? nothing
        : html`<button class="count" aria-pressed=${String(unfolded && onlyTroubled)} title="Show only these, or all" @click=${() => actions.toggleTroubled()}>
            ${formatCount(troubled)} without a usable gradient
          </button>`}
    </div>
    ${unfolded
      ? html`<gf-variables
          .rows=${rows}
          .onlyTroubled=${onlyTroubled && troubled > 0}
          .selected=${selected}
          @gf-variable=${(event: CustomEvent<number>) => actions.choose(event.detail)}
        ></gf-variables>`
      : nothing}
  </section>`;
}
