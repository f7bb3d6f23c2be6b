/** The current layout of one tree: which groups are open, and the resulting positions. */

import type {Model} from "../model/model.ts";
import {ancestorsOf, isGroup} from "../model/tree.ts";
import {Arranger} from "./arranger.ts";
import type {Placed, Scene} from "./scene.ts";

export class Unfolding {
  readonly #model: Model;
  readonly #arranger: Arranger;
  #open: ReadonlySet<number>;
  #scene: Scene;

  constructor(model: Model, open: ReadonlySet<number>) {
    this.#model = model;
    this.#arranger = new Arranger(model.tree, model.flows);
    this.#open = open;
    this.#scene = this.#arranger.arrange(open);
  }

  /** The same groups, by name, opened in another model of the same run. */
  continuedIn(model: Model): Unfolding {
    const names = new Set([...this.#open].map((group) => this.#model.tree.items[group].name));
    const groups = model.tree.items.filter((item) => isGroup(model.tree, item.id) && names.has(item.name));
    return new Unfolding(model, new Set(groups.map((group) => group.id)));
  }

  /** The open groups, visible or not. A new set after every change. */
  get open(): ReadonlySet<number> {
    return this.#open;
  }

  get scene(): Scene {
    return this.#scene;
  }

  /** The positions of items that are visible. */
  placed(items: readonly number[]): readonly Placed[] {
    return items.flatMap((item) => this.#scene.byItem.get(item) ?? []);
  }

  /** The positions of items, or of the closed groups that hide them; each once, in the given order. */
  standIns(items: readonly number[]): readonly Placed[] {
    const seen = (item: number): readonly Placed[] => this.placed([item, ...ancestorsOf(this.#model.tree, item)]).slice(0, 1);
    return [...new Set(items.flatMap(seen))];
  }

  isGroup(item: number): boolean {
    return isGroup(this.#model.tree, item);
  }

  /** Opens or closes a group. Returns how far that moved its left and top. */
  toggle(group: number): {dx: number; dy: number} {
    const before = this.#scene.byItem.get(group);
    const open = new Set(this.#open);
    if (!open.delete(group)) {
      open.add(group);
    }
    this.#arrange(open);
    const after = this.#scene.byItem.get(group);
    const moved = before !== undefined && after !== undefined;
    return moved ? {dx: after.x - before.x, dy: after.y - before.y} : {dx: 0, dy: 0};
  }

  openAlso(groups: ReadonlySet<number>): void {
    if ([...groups].some((group) => !this.#open.has(group))) {
      this.#arrange(new Set([...this.#open, ...groups]));
    }
  }

  openOnly(groups: ReadonlySet<number>): void {
    if (groups.size !== this.#open.size || [...groups].some((group) => !this.#open.has(group))) {
      this.#arrange(groups);
    }
  }

  openAll(): void {
    const {items, root} = this.#model.tree;
    this.openAlso(new Set(items.filter(({id}) => this.isGroup(id) && id !== root).map(({id}) => id)));
  }

  closeAll(): void {
    this.openOnly(new Set());
  }

  #arrange(open: ReadonlySet<number>): void {
    this.#open = open;
    this.#scene = this.#arranger.arrange(open);
  }
}
