/** Offers a file for download. */

export function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  downloadFrom(name, address);
  // The browser has started the download by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** The same for a file at an address of the same server. */
export function downloadFrom(name: string, address: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}

export function text(content: string, type: string): Blob {
  return new Blob([content], {type: `${type};charset=utf-8`});
}

/** The name of a run as the beginning of a file name. */
export function fileStem(run: string, step: number): string {
  const name = run.replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "") || "run";
  return step < 0 ? name : `${name}-step-${step}`;
}
