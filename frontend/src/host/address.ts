/**
 * Keeps the current view in the address of the surrounding page, so that a link restores it:
 * `#gradflow&p.gradflow.run=…`.
 */

import type {Filters} from "../model/scalars.ts";

const PREFIX = "p.gradflow.";
const TAB = "gradflow";

/** Names to values. A missing name means the default. */
export type Place = Readonly<Record<string, string | undefined>>;

/** Our part of a fragment. */
export function parsePlace(hash: string): Place {
  const place: Record<string, string> = {};
  for (const part of hash.replace(/^#/, "").split("&")) {
    const [name, value = ""] = part.split("=", 2);
    if (name.startsWith(PREFIX)) {
      place[name.slice(PREFIX.length)] = decoded(value);
    }
  }
  return place;
}

/** The fragment with our part replaced and the rest unchanged. */
export function withPlace(hash: string, place: Place): string {
  const others = hash.replace(/^#/, "").split("&").filter((part) => part !== "" && !part.startsWith(PREFIX));
  const ours = Object.entries(place)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${PREFIX}${name}=${encodeURIComponent(String(value))}`);
  return `#${[...others, ...ours].join("&")}`;
}

export function readPlace(): Place {
  try {
    return parsePlace(window.parent.location.hash);
  } catch {
    return {};
  }
}

/** `remember`: the previous view becomes a step back in the browser's history. */
export function writePlace(place: Place, remember: boolean): void {
  try {
    const {location, history} = window.parent;
    const hash = withPlace(location.hash, place);
    if (hash !== location.hash && isOurs(location.hash)) {
      history[remember ? "pushState" : "replaceState"](history.state, "", hash);
    }
  } catch {
    // The surrounding page has a different origin: there is no address to write to.
  }
}

/**
 * An address that shows another person the same view; null if there is none: in a frame of another page, such
 * as a notebook, whose address does not contain our view, and in a local file. Unlike the address of the page, it names
 * the step even if that is the last one: there may be later steps when it is opened.
 */
export function linkToShare(isServed: boolean, step: number): string | null {
  try {
    const {protocol, href} = window.parent.location;
    const isOwn = isServed || window.parent === window;
    return isOwn && /^https?:$/.test(protocol) ? atStep(href, step) : null;
  } catch {
    return null;
  }
}

/** An address that includes the shown step; -1 for none. */
export function atStep(href: string, step: number): string {
  const [page, hash = ""] = href.split("#", 2);
  return step < 0 ? href : page + withPlace(hash, {...parsePlace(hash), step: String(step)});
}

/** TensorBoard's Time Series tab with filters; null outside of TensorBoard. It cannot take a step. */
export function timeSeriesLink(filters: Filters): string | null {
  try {
    return window.parent === window ? null : timeSeriesAt(window.parent.location.href, filters);
  } catch {
    return null;
  }
}

export function timeSeriesAt(href: string, {runs, tags}: Filters): string {
  const url = new URL(href);
  for (const [name, filter] of [["runFilter", runs], ["tagFilter", tags]] as const) {
    filter === "" ? url.searchParams.delete(name) : url.searchParams.set(name, filter);
  }
  url.hash = "timeseries";
  return url.href;
}

/** Calls back when the reader goes back or forward. Returns a function that ends that. */
export function watchPlace(callback: (place: Place) => void): () => void {
  try {
    const around = window.parent;
    const tell = (): void => {
      if (isOurs(around.location.hash)) {
        callback(readPlace());
      }
    };
    around.addEventListener("popstate", tell);
    const end = (): void => around.removeEventListener("popstate", tell);
    // The listener is on a page that outlives this frame.
    window.addEventListener("pagehide", end, {once: true});
    return end;
  } catch {
    return () => {};
  }
}

/** Whether our tab is active: TensorBoard names it first. Outside of TensorBoard there are no tabs. */
function isOurs(hash: string): boolean {
  const [first] = hash.replace(/^#/, "").split("&");
  return first === "" || first === TAB || first.startsWith(PREFIX);
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
