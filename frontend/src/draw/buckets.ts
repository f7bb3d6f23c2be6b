/** Groups shapes that look the same, so that they are painted together: every change of colour costs time. */

export function bucketed<T, K>(things: readonly T[], keyOf: (thing: T) => K): Map<K, T[]> {
  const buckets = new Map<K, T[]>();
  for (const thing of things) {
    const key = keyOf(thing);
    const bucket = buckets.get(key);
    bucket === undefined ? buckets.set(key, [thing]) : bucket.push(thing);
  }
  return buckets;
}
