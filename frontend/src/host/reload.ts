/**
 * When to look for new data: TensorBoard announces reloads on a channel that its plugins open, and trainings continue
 * in the meantime.
 */

import {isShown} from "./shown.ts";

/** Milliseconds between two requests. */
const POLL = 5000;
const OPEN = "experimental.bootstrap";
const RELOADED = "experimental.DataReloaded";

interface Message {
  readonly type: string;
  readonly id: number;
  readonly isReply: boolean;
}

/**
 * Calls back every few seconds while the page is visible, and when TensorBoard is reloaded. Returns a function that
 * ends that.
 */
export function watchData(callback: () => void): () => void {
  const poll = setInterval(() => isShown() && callback(), POLL);
  const end = watchReload(callback);
  return () => {
    clearInterval(poll);
    end();
  };
}

/** Its reload button and its auto-reload. */
function watchReload(callback: () => void): () => void {
  if (window.parent === window) {
    return () => {};
  }
  const {port1, port2} = new MessageChannel();
  port1.onmessage = ({data}: MessageEvent<unknown>) => {
    const message = parsed(data);
    if (message === null || message.isReply) {
      return;
    }
    // TensorBoard waits for a reply to every message.
    port1.postMessage(JSON.stringify({type: message.type, id: message.id, payload: null, error: null, isReply: true}));
    if (message.type === RELOADED) {
      callback();
    }
  };
  window.parent.postMessage(OPEN, "*", [port2]);
  return () => port1.close();
}

function parsed(data: unknown): Message | null {
  try {
    const message = JSON.parse(String(data)) as Partial<Message> | null;
    return typeof message?.type === "string" ? (message as Message) : null;
  } catch {
    return null;
  }
}
