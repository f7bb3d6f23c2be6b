/** Names by which items are found again in another page, another run, another trace. */

import {ancestorsOf, isGroup, type Tree} from "./tree.ts";

/** One for each item, by its id; all different. A group's ends in a slash. */
export class Addresses {
  readonly #tree: Tree;
  readonly #names: readonly string[];
  readonly #items = new Map<string, number>();

  constructor(tree: Tree) {
    this.#tree = tree;
    this.#names = tree.items.map(({id, name}) => {
      let address = isGroup(tree, id) ? `${name}/` : name;
      while (this.#items.has(address)) {
        address += "~";
      }
      this.#items.set(address, id);
      return address;
    });
  }

  /** Empty where there is no such item. */
  nameOf(item: number): string {
    return this.#names[item] ?? "";
  }

  /** -1 where there is none of that name. */
  itemNamed(name: string): number {
    return name === "" ? -1 : (this.#items.get(name) ?? -1);
  }

  /** The innermost of the open groups that are seen: with the groups around them they are all. */
  namesOf(open: ReadonlySet<number>): string[] {
    const seen = [...open].filter((group) => ancestorsOf(this.#tree, group).every((each) => open.has(each)));
    const inner = seen.filter((group) => !this.#tree.items[group].children.some((child) => open.has(child)));
    return inner.map((group) => this.nameOf(group)).sort();
  }

  /** What `namesOf` was given, as far as there are such groups here. */
  groupsNamed(names: readonly string[]): Set<number> {
    const groups = names.map((name) => this.itemNamed(name)).filter((item) => item >= 0 && isGroup(this.#tree, item));
    return new Set(groups.flatMap((group) => [group, ...ancestorsOf(this.#tree, group)]));
  }
}
