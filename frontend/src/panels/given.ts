/** Properties that an element is given by the one around it. */

import type {PropertyDeclaration} from "lit";

export function given(...names: readonly string[]): Record<string, PropertyDeclaration> {
  return Object.fromEntries(names.map((name) => [name, {attribute: false}]));
}
