/** Findings in the order a person should read them. */

import {SEVERITIES, type Diagnosis, type Finding} from "../record.ts";

/** Worst first; within a severity in the order of the diagnosis. */
export function inOrder(findings: readonly Finding[]): Finding[] {
  return SEVERITIES.flatMap((severity) => findings.filter((finding) => finding.severity === severity));
}

/** Identifies a finding, also in the diagnosis of another step or in an address. */
export function keyOf({cause, op, target, variables}: Finding): string {
  return [cause, op?.name ?? "", target, variables[0] ?? ""].join("~");
}

/** The earlier step in which the worst of a diagnosis began; -1 if it began in the step itself. */
export function beganIn({findings}: Diagnosis): number {
  return inOrder(findings).at(0)?.began ?? -1;
}

/** The finding that says of its own step what another says of an earlier one: ops of another trace have other numbers. */
export function sameIn({findings}: Diagnosis, {cause, op, variables}: Finding): Finding | null {
  const same = findings.filter((each) => each.cause === cause && each.op?.name === op?.name);
  return same.find((each) => each.variables[0] === variables[0]) ?? same[0] ?? null;
}

/** The finding `step` places further in the list, wrapping around; without a selection, the first or the last. */
export function neighbour(findings: readonly Finding[], key: string | null, step: 1 | -1): Finding | null {
  if (findings.length === 0) {
    return null;
  }
  const at = findings.findIndex((finding) => keyOf(finding) === key);
  const next = at < 0 ? (step > 0 ? 0 : findings.length - 1) : at + step;
  return findings[(next + findings.length) % findings.length];
}

/** Variables whose findings only say that their state is intended. */
export function explainedIn(diagnosis: Diagnosis | null): Set<string> {
  const explained = new Set(namesIn(diagnosis, (finding) => finding.severity === "info"));
  namesIn(diagnosis, (finding) => finding.severity !== "info").forEach((name) => explained.delete(name));
  return explained;
}

/** Variables of some findings. */
export function namesIn(diagnosis: Diagnosis | null, which: (finding: Finding) => boolean): string[] {
  return (diagnosis?.findings ?? []).filter(which).flatMap((finding) => finding.variables);
}
