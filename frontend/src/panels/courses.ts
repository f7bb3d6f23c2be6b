/** How a loss goes in some steps with something and without it, as a small picture. */

import {css, html, nothing, svg, type TemplateResult} from "lit";
import {type Compared, curvesOf, type Line} from "../model/curves.ts";
import {formatNumber} from "../model/format.ts";

export function courses(compared: Compared): TemplateResult | typeof nothing {
  const curves = curvesOf(compared);
  if (curves === null) {
    return nothing;
  }
  const [least, most] = curves.range;
  return html`<figure class="courses">
    <svg viewBox="0 0 1000 1000" preserveAspectRatio="none" role="img" aria-label="The loss in ${compared.steps} steps ${compared.names.join(" and ")}">
      ${drawn(curves.without, "without")} ${drawn(curves.withEdit, "with")}
    </svg>
    <span class="most">${formatNumber(most)}</span>
    <span class="least">${formatNumber(least)}${curves.isLog ? " (logarithmic)" : ""}</span>
    <figcaption>
      <span class="with">${compared.names[0]}</span>
      ${curves.without.length === 0 ? nothing : html`<span class="without">${compared.names[1]}</span>`}
    </figcaption>
  </figure>`;
}

function drawn(lines: readonly Line[], kind: string): readonly unknown[] {
  return lines.map((line) => svg`<polyline class=${kind} points=${line.map(([x, y]) => `${(1000 * x).toFixed(1)},${(1000 - 1000 * y).toFixed(1)}`).join(" ")} />`);
}

export const coursesStyles = css`
  .courses {
    grid-column: 1 / -1;
    display: grid;
    grid-template: 1fr 1fr auto / 1fr auto;
    column-gap: 7px;
    margin: 7px 0 2px;
    font-size: 11.5px;
    color: var(--gf-muted);
  }
  .courses svg {
    grid-row: 1 / 3;
    width: 100%;
    height: 54px;
    overflow: visible;
  }
  .courses polyline {
    fill: none;
    stroke-width: 1.5;
    vector-effect: non-scaling-stroke;
  }
  .courses polyline.with {
    stroke: var(--gf-good);
  }
  .courses polyline.without {
    stroke: var(--gf-muted);
    stroke-dasharray: 4 3;
  }
  .courses .least {
    align-self: end;
  }
  .courses figcaption {
    grid-column: 1 / -1;
    display: flex;
    gap: 12px;
    margin-top: 3px;
  }
  .courses figcaption span::before {
    content: "";
    display: inline-block;
    width: 16px;
    margin-right: 5px;
    vertical-align: middle;
    border-top: 1.5px solid var(--gf-good);
  }
  .courses figcaption .without::before {
    border-top: 1.5px dashed var(--gf-muted);
  }
`;
