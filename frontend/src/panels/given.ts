/** Properties that an element gets from its parent. */

import type {PropertyDeclaration} from "lit";

export function given(...names: readonly string[]): Record<string, PropertyDeclaration> {
  return Object.fromEntries(names.map((name) => [name, {attribute: false}]));
}
