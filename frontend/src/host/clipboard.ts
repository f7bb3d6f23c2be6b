/** Copies text to the clipboard. */

/** The clipboard exists only in secure contexts, and not every frame may write to it; otherwise a selection is copied. */
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
