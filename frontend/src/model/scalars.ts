/** The scalars that TensorBoard knows, by the names of the runs that have them. */

/** The tags of each of TensorBoard's runs. */
export type Scalars = ReadonlyMap<string, readonly string[]>;

export interface Filters {
  /** Regular expressions for the Time Series tab. Empty for all. */
  readonly runs: string;
  readonly tags: string;
}

/** The sub-directory of a run that contains its gradients. */
const OURS = /(^|\/)gradflow$/;

/**
 * The filter that shows the loss of a run, or whatever else it has; null if it has no scalars. `run`: TensorBoard's
 * name of it, which is the directory of its gradients: Keras writes into its parent and below that.
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
