/** How to read the picture, for new readers; the list of keys repeats it. */

import {css, html, type TemplateResult} from "lit";

/** The storage key that records that it was read. */
export const HINT = "hint";

export function howToRead(): TemplateResult {
  return html`<strong>How to read this:</strong> your model runs down to the loss, and the gradient flows back up. A wider line carries a larger gradient, a
    <span class="bad">red dashed line</span> carries none, and <span class="bad">⊘</span> marks the op that stops the gradient.`;
}

export function hint(close: () => void): TemplateResult {
  return html`<aside class="hint" aria-label="How to read the picture">
    <span>${howToRead()}</span>
    <button @click=${close}>Got it</button>
  </aside>`;
}

export const hintStyles = css`
  .hint {
    display: flex;
    align-items: center;
    gap: 12px;
    border-bottom: 1px solid var(--gf-line);
    background: var(--gf-accentSoft);
    padding: 5px 16px;
  }
  .hint > span {
    flex: 1;
    min-width: 0;
  }
  .hint button {
    flex: none;
  }
  .hint .bad,
  .keys .bad {
    color: var(--gf-bad);
    font-weight: 600;
  }
`;
