/** Puts text where other programs find it. */

/** The clipboard is there in secure contexts only, and not every frame may write to it; elsewhere a selection is copied. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined && (await navigator.clipboard.writeText(text).then(() => true, () => false))) {
    return true;
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
