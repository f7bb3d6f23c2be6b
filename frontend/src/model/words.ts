/** The record's words in readable form. */

import type {Passes, Severity, Status} from "../record.ts";
import type {Answer} from "./gradients.ts";

interface StatusWords {
  readonly icon: string;
  readonly word: string;
  readonly tone: "bad" | "warn" | "good" | "quiet";
}

export const STATUS: Readonly<Record<Status, StatusWords>> = {
  connected: {icon: "●", word: "connected", tone: "good"},
  disconnected: {icon: "✕", word: "disconnected", tone: "bad"},
  unused: {icon: "∅", word: "unused", tone: "bad"},
  zero: {icon: "0", word: "zero", tone: "warn"},
  vanishing: {icon: "↘", word: "vanishing", tone: "warn"},
  integer: {icon: "ℤ", word: "integer", tone: "quiet"},
  not_measured: {icon: "–", word: "not measured", tone: "quiet"},
  exploding: {icon: "↗", word: "exploding", tone: "warn"},
  nan: {icon: "?", word: "NaN", tone: "bad"},
  inf: {icon: "∞", word: "infinite", tone: "bad"},
  frozen: {icon: "❄", word: "frozen", tone: "quiet"},
  error: {icon: "!", word: "error", tone: "bad"},
};

/** From the most to the least urgent. */
export const STATUS_ORDER: readonly Status[] = [
  "error",
  "nan",
  "inf",
  "disconnected",
  "unused",
  "zero",
  "exploding",
  "vanishing",
  "not_measured",
  "connected",
  "integer",
  "frozen",
];

export const SEVERITY: Readonly<Record<Severity, {readonly icon: string; readonly one: string; readonly many: string}>> = {
  error: {icon: "⊘", one: "error", many: "errors"},
  warning: {icon: "△", one: "warning", many: "warnings"},
  info: {icon: "i", one: "for information", many: "for information"},
};

export const PASSES: Readonly<Record<Passes, string>> = {
  yes: "propagates the gradient",
  none: "blocked: the op's gradient function returns None for this input",
  not_differentiable: "blocked: the op is not differentiable",
  unregistered: "blocked: TensorFlow has no gradient for this op",
  dtype: "blocked: not a floating-point tensor",
  error: "blocked: the gradient function failed",
  state: "blocked: passes through the state of a variable",
  unknown: "not known",
};

export const OUTCOME: Readonly<Record<Answer["outcome"], string>> = {
  value: "a gradient",
  none: "no gradient",
  not_asked: "not requested",
  error: "the request failed",
  not_recorded: "not recorded",
};
