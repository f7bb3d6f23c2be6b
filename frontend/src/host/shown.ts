/** Whether anybody can see us: TensorBoard keeps the frames of other tabs alive, at no height. */

export function isShown(): boolean {
  return !document.hidden && window.innerHeight > 0;
}
