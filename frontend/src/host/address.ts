/** What is shown, in the address of the page around us, so that a link leads back to it: `#gradflow&p.gradflow.run=…`. */

import type {Filters} from "../model/scalars.ts";

const PREFIX = "p.gradflow.";
const TAB = "gradflow";

/** Names to texts. An absent name is as it is at the start. */
export type Place = Readonly<Record<string, string | undefined>>;

/** What a fragment says of us. */
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

/** The fragment with our part of it replaced and the rest as it was. */
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

/** `remember`: what was shown before is a step back in the browser's history. */
export function writePlace(place: Place, remember: boolean): void {
  try {
    const {location, history} = window.parent;
    const hash = withPlace(location.hash, place);
    if (hash !== location.hash && isOurs(location.hash)) {
      history[remember ? "pushState" : "replaceState"](history.state, "", hash);
    }
  } catch {
    // The page around us is of another origin: there is no address to write to.
  }
}

/**
 * An address that shows another person the same; null where there is none: in a frame of somebody else's page, a
 * notebook for example, whose address says nothing of us, and in a file on this disk. Other than the address of the
 * page, it names the step also where that is the last: by the time it is opened there may be others.
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

/** An address with the shown step in it; -1 for none. */
export function atStep(href: string, step: number): string {
  const [page, hash = ""] = href.split("#", 2);
  return step < 0 ? href : page + withPlace(hash, {...parsePlace(hash), step: String(step)});
}

/** TensorBoard's tab of time series with filters in it; null where no TensorBoard is around us. It takes no step. */
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

/** Calls back when the reader went back or forward. Returns what ends that. */
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
    // The listener is on a page that outlives this one.
    window.addEventListener("pagehide", end, {once: true});
    return end;
  } catch {
    return () => {};
  }
}

/** Whether our tab is in front: TensorBoard names it first. Outside of TensorBoard there are no tabs. */
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
