/**
 * What this package refuses, one type: `code` is stable and is the word that the Python client uses for it, the message is
 * for people. No message holds a value of anybody's record.
 */
export class LdpError extends Error {
  constructor(
    readonly code: string,
    problem: string = code,
    options?: ErrorOptions,
  ) {
    super(problem, options);
  }
}

/** Throws LdpError unless the condition holds. */
export function ensure(right: unknown, code: string, problem?: string): asserts right {
  if (!right) throw new LdpError(code, problem);
}
