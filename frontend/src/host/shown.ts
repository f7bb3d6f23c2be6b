/** Whether the frame is visible: TensorBoard keeps the frames of other tabs alive with no height. */

export function isShown(): boolean {
  return !document.hidden && window.innerHeight > 0;
}
