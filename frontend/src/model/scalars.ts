/** What TensorBoard knows of a run besides its gradients: its scalars, by the names of the runs that have them. */

/** The tags of each of TensorBoard's runs. */
export type Scalars = ReadonlyMap<string, readonly string[]>;

export interface Filters {
  /** Regular expressions, as the tab of time series takes them. Empty for all. */
  readonly runs: string;
  readonly tags: string;
}

/** Below the directory of a run, where its gradients lie. */
const OURS = /(^|\/)gradflow$/;

/**
 * What shows the loss of a run, or whatever else it has; null where it has no scalars. `run`: TensorBoard's name of it,
 * which says where its gradients lie: beside them, and below, Keras writes.
 */
export function filtersFor(run: string, scalars: Scalars): Filters | null {
  const name = run.replace(OURS, "");
  const own = [...scalars].filter(([other]) => name === "" || other === name || other.startsWith(`${name}/`));
  if (own.length === 0) {
    return null;
  }
  return {runs: name === "" ? "" : `^${escaped(name)}(/|$)`, tags: own.some(([, tags]) => tags.some((tag) => tag.includes("loss"))) ? "loss" : ""};
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
