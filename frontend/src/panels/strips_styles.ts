/** How the sentence on top looks, and what stands where there is nothing yet. */

import {css} from "lit";

export const stripsStyles = css`
  .summary {
    display: flex;
    align-items: center;
    gap: 10px;
    padding: 8px 16px;
    border-bottom: 1px solid var(--gf-line);
  }
  .summary .icon {
    font-size: 16px;
    font-weight: 700;
  }
  .summary .sentence {
    flex: 1;
    min-width: 0;
    font-weight: 600;
  }
  .summary.error {
    background: var(--gf-badSoft);
  }
  .summary.error .icon {
    color: var(--gf-bad);
  }
  .summary.warning {
    background: var(--gf-warnSoft);
  }
  .summary.warning .icon {
    color: var(--gf-warn);
  }
  .summary.healthy .icon {
    color: var(--gf-good);
  }
  .go {
    flex: none;
  }
  .problems {
    padding: 8px 16px;
    background: var(--gf-badSoft);
    color: var(--gf-bad);
    border-bottom: 1px solid var(--gf-line);
    overflow-wrap: anywhere;
  }
  .absent {
    display: flex;
    align-items: center;
    gap: 10px;
    padding: 4px 16px;
    background: var(--gf-warnSoft);
    border-bottom: 1px solid var(--gf-line);
    overflow-wrap: anywhere;
  }
  .absent span {
    flex: 1;
  }
  .skeleton {
    display: flex;
    flex-direction: column;
    gap: 10px;
    padding: 12px 14px;
  }
  .skeleton i {
    height: 20px;
    border-radius: 6px;
    background: var(--gf-raised);
    animation: breathe 1.2s ease-in-out infinite alternate;
  }
  .skeleton.boxes {
    align-items: center;
  }
  .skeleton.boxes i {
    width: 140px;
    height: 40px;
  }
  @keyframes breathe {
    to {
      opacity: 0.4;
    }
  }
  @media (prefers-reduced-motion: reduce) {
    .skeleton i {
      animation: none;
    }
  }
  .progress {
    position: absolute;
    inset: 0;
    display: flex;
    flex-direction: column;
    align-items: center;
    justify-content: center;
    gap: 8px;
    color: var(--gf-muted);
    pointer-events: none;
  }
  progress {
    width: 180px;
    height: 5px;
    accent-color: var(--gf-accent);
  }
  .nothing {
    position: absolute;
    top: 40%;
    left: 60px;
    right: 60px;
    text-align: center;
    color: var(--gf-muted);
    pointer-events: none;
  }
  .waiting,
  .empty {
    align-items: center;
    justify-content: center;
    padding: 24px;
    color: var(--gf-muted);
  }
  .empty {
    text-align: center;
    color: var(--gf-text);
  }
  .empty h1 {
    margin: 0 0 6px;
    font-size: 19px;
    font-weight: 600;
  }
  .empty p {
    margin: 8px 0;
  }
  .empty pre {
    margin: 8px 0;
    max-width: 100%;
    overflow: auto;
    border: 1px solid var(--gf-line);
    border-radius: 8px;
    background: var(--gf-raised);
    padding: 14px 18px;
    text-align: left;
  }
`;
