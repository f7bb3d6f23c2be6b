/** Names of ops and their scopes: `a/b/c` is the op `c` in the scope `a/b`; the outermost scope is empty. */

/** The scope of a name. */
export function scopeOf(name: string): string {
  const cut = name.lastIndexOf("/");
  return cut < 0 ? "" : name.slice(0, cut);
}

/** The name without its scope. */
export function lastPart(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** Whether `name` is in `scope`, at any depth, or is it. */
export function isWithin(name: string, scope: string): boolean {
  return scope === "" || name === scope || name.startsWith(`${scope}/`);
}

/** The innermost scope that contains both. */
export function commonScope(a: string, b: string): string {
  let common = a;
  while (!isWithin(b, common)) {
    common = scopeOf(common);
  }
  return common;
}
