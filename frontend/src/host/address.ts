/** What is shown, in the address of the page around us, so that a link leads back to it: `#gradflow&p.gradflow.run=…`. */

const PREFIX = "p.gradflow.";

export interface Place {
  readonly run?: string;
  readonly step?: string;
  readonly select?: string;
}

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

export function writePlace(place: Place): void {
  try {
    const {location, history} = window.parent;
    const hash = withPlace(location.hash, place);
    if (hash !== location.hash) {
      history.replaceState(history.state, "", hash);
    }
  } catch {
    // The page around us is of another origin: there is no address to write to.
  }
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
