/** The matrix of the terms of each loss by layers: shares of the gradient, and the cosine of opposed terms. */

import {css, html, nothing, type TemplateResult} from "lit";
import {formatNumber} from "../model/format.ts";
import {byLayer, losses, percent, type LayerTerms} from "../model/terms.ts";
import type {TermReport} from "../record.ts";

export const termsStyles = css`
  .terms {
    overflow-x: auto;
    margin: 14px 0;
  }
  .terms table {
    border-collapse: collapse;
    font-size: 12px;
  }
  .terms caption {
    text-align: left;
    color: var(--gf-muted);
    padding: 0 2px 6px;
  }
  .terms th,
  .terms td {
    padding: 3px 8px;
    text-align: right;
    font-weight: normal;
    border-top: 1px solid var(--gf-line);
    white-space: nowrap;
  }
  .terms th:first-child {
    text-align: left;
  }
  .terms td.share {
    background: linear-gradient(to right, var(--gf-line) var(--share), transparent var(--share));
  }
  .terms button.link {
    border: 0;
    padding: 0;
    background: none;
    font-size: 12px;
  }
  .terms button.link[aria-pressed="true"] {
    color: var(--gf-accent);
    font-weight: 600;
  }
  .terms td.against {
    color: var(--gf-bad);
  }
`;

// From here on, two terms oppose each other.
const AGAINST = -0.5;

/** What the table can be used to choose. */
export interface Choice {
  /** Name of the chosen term, and of the chosen layer; empty for none. */
  readonly chosen: string;
  readonly layer: string;
  /** The name of a term in its loss: a report puts the name of the loss before it if several losses have such a term. */
  ownName(term: string): string;
  choose(term: string): void;
  show(layer: string): void;
}

/** Nothing if no term was measured. */
export function termsTable(terms: readonly TermReport[], choice: Choice | null = null): TemplateResult | typeof nothing {
  if (terms.length === 0) {
    return nothing;
  }
  return html`${losses(terms).map(
    (own) => html`<div class="terms">
      <table>
        <caption>Which term of the loss trains which layer</caption>
        <thead>
          <tr>
            <th scope="col">Layer</th>
            ${own.map((term) => html`<th scope="col" title=${term.source?.code ?? ""}>${heading(term, choice)}<br />${formatNumber(term.value)}</th>`)}
            <th scope="col">Cosine</th>
          </tr>
        </thead>
        <tbody>
          ${byLayer(own).map((each) => row(each, choice))}
        </tbody>
      </table>
    </div>`,
  )}`;
}

function heading({name}: TermReport, choice: Choice | null): TemplateResult | string {
  return choice === null
    ? name
    : html`<button class="link" aria-pressed=${String(choice.ownName(name) === choice.chosen)} title="Show the gradient of this term in the graph" @click=${() => choice.choose(choice.ownName(name))}>${name}</button>`;
}

function row(each: LayerTerms, choice: Choice | null): TemplateResult {
  const angle = each.conflict;
  const layer = choice === null ? each.layer : html`<button class="link" aria-pressed=${String(each.layer === choice.layer)} title="Show this layer in the chart" @click=${() => choice.show(each.layer)}>${each.layer}</button>`;
  return html`<tr>
    <th scope="row">${layer}</th>
    ${each.shares.map((share) =>
      share === null ? html`<td>–</td>` : html`<td class="share" style=${`--share: ${100 * share}%`}>${percent(share)}</td>`,
    )}
    ${angle === null
      ? html`<td>–</td>`
      : html`<td class=${angle.cosine < AGAINST ? "against" : ""} title=${`of ${angle.one} and ${angle.other}`}>
          ${formatNumber(Number(angle.cosine.toFixed(2)))}
        </td>`}
  </tr>`;
}
