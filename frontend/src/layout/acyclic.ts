/** Reverses links so that none of them closes a cycle. */

export interface Link {
  readonly from: number;
  readonly to: number;
}

/** For each link, whether it must be reversed. Iterative: a chain may be arbitrarily long. */
export function reversals(count: number, links: readonly Link[]): boolean[] {
  const outgoing: number[][] = Array.from({length: count}, () => []);
  links.forEach((link, index) => outgoing[link.from].push(index));
  const reversed = links.map(() => false);
  const state = new Uint8Array(count); // 0 new, 1 on the stack, 2 done
  const next = new Int32Array(count);
  for (const start of startingPoints(count, links)) {
    if (state[start] !== 0) {
      continue;
    }
    const stack = [start];
    state[start] = 1;
    while (stack.length > 0) {
      const at = stack[stack.length - 1];
      if (next[at] === outgoing[at].length) {
        state[at] = 2;
        stack.pop();
        continue;
      }
      const link = outgoing[at][next[at]];
      next[at] += 1;
      const to = links[link].to;
      if (state[to] === 1) {
        reversed[link] = true;
      } else if (state[to] === 0) {
        state[to] = 1;
        stack.push(to);
      }
    }
  }
  return reversed;
}

/** Nodes without incoming links come first, so that the flow decides which link of a cycle points back. */
function startingPoints(count: number, links: readonly Link[]): number[] {
  const inputs = new Int32Array(count);
  for (const link of links) {
    inputs[link.to] += 1;
  }
  const nodes = Array.from({length: count}, (_, index) => index);
  return [...nodes.filter((node) => inputs[node] === 0), ...nodes.filter((node) => inputs[node] > 0)];
}
