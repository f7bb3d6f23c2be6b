/** Names that identify items across pages, runs and traces. */

import {ancestorsOf, isGroup, type Tree} from "./tree.ts";

/** A longer list of names would make the address too long to send. */
export const LONGEST = 1500;
/** Replaces such a list: all groups are open. No group has this name, because group names end in a slash. */
const EVERYTHING: readonly string[] = ["*"];

/** A unique name for each item, by id. A group's name ends in a slash. */
export class Addresses {
  readonly #tree: Tree;
  #names: readonly string[] | null = null;
  #everything: readonly number[] | null = null;
  readonly #items = new Map<string, number>();
  /** The most recent name: it is usually looked up next. */
  #named: {readonly names: readonly string[]; readonly groups: ReadonlySet<number>} | null = null;

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  /** Created on first use: the first picture needs none. */
  #all(): readonly string[] {
    this.#names ??= this.#tree.items.map(({id, name}) => {
      let address = isGroup(this.#tree, id) ? `${name}/` : name;
      while (this.#items.has(address)) {
        address += "~";
      }
      this.#items.set(address, id);
      return address;
    });
    return this.#names;
  }

  /** All that can be open. */
  get #groups(): readonly number[] {
    const {items, root} = this.#tree;
    this.#everything ??= items.flatMap(({id}) => (isGroup(this.#tree, id) && id !== root ? [id] : []));
    return this.#everything;
  }

  /** Empty if there is no such item. */
  nameOf(item: number): string {
    return item < 0 ? "" : (this.#all()[item] ?? "");
  }

  /** -1 if there is none with that name. */
  itemNamed(name: string): number {
    return name === "" || this.#all().length === 0 ? -1 : (this.#items.get(name) ?? -1);
  }

  /** The innermost of the visible open groups: together with their enclosing groups they are all of them. */
  namesOf(open: ReadonlySet<number>): readonly string[] {
    const seen = [...open].filter((group) => ancestorsOf(this.#tree, group).every((each) => open.has(each)));
    const inner = seen.filter((group) => !this.#tree.items[group].children.some((child) => open.has(child)));
    const all = inner.map((group) => this.nameOf(group)).sort();
    const names = open.size === this.#groups.length && all.join().length > LONGEST ? EVERYTHING : all;
    this.#named = {names, groups: new Set(seen)};
    return names;
  }

  /** The inverse of `namesOf`, for groups that exist here. */
  groupsNamed(names: readonly string[]): ReadonlySet<number> {
    if (names === this.#named?.names) {
      return this.#named.groups;
    }
    if (names.length === 1 && names[0] === EVERYTHING[0]) {
      return new Set(this.#groups);
    }
    const groups = names.map((name) => this.itemNamed(name)).filter((item) => item >= 0 && isGroup(this.#tree, item));
    return new Set(groups.flatMap((group) => [group, ...ancestorsOf(this.#tree, group)]));
  }
}
