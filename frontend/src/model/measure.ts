/** What the colour of an edge tells. */

/**
 * norm   the norm of the gradient
 * loss   the same as a share of the gradient at the loss
 * op     what the op at its end makes of the gradient: the norm here over the norm that arrives there
 */
export type Measure = "norm" | "loss" | "op";

export const MEASURES: readonly Measure[] = ["norm", "loss", "op"];
