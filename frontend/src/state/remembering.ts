/** Functions that answer from memory while they are asked the same. */

/**
 * The function, with its last answer remembered. What the answer depends on are its arguments and nothing else: they are
 * compared by identity.
 */
export function remembering<Causes extends readonly unknown[], T>(compute: (...causes: Causes) => T): (...causes: Causes) => T {
  let known: {readonly causes: Causes; readonly value: T} | null = null;
  return (...causes) => {
    if (known === null || causes.some((cause, index) => cause !== known?.causes[index])) {
      known = {causes, value: compute(...causes)};
    }
    return known.value;
  };
}

/** Answers with the value that it was given before, as long as the new one says the same: what depends on it stays. */
export function steady<T>(saidBy: (value: T) => string): (value: T) => T {
  const said = remembering(saidBy);
  let known: {readonly said: string; readonly value: T} | null = null;
  return (value) => {
    const now = said(value);
    if (known === null || known.said !== now) {
      known = {said: now, value};
    }
    return known.value;
  };
}
