/** Every limit; times are in milliseconds. The names and the values are those of the Python client, where both have them. */
export interface Policy {
  /** `start` waits a random time up to this before a first try, so that the time of arrival says little. */
  readonly firstDelay: number;
  readonly backoffBase: number;
  readonly backoffLongest: number;
  readonly retryAfterLongest: number;
  readonly requestTimeout: number;
  readonly fetchTries: number;
  /** A report is given up at this age, or when its campaign has been closed for `closingGrace`; after `expiryTries`. */
  readonly reportAge: number;
  readonly closingGrace: number;
  readonly expiryTries: number;
  /** The device's clock may be wrong by this much. */
  readonly clockTolerance: number;
  readonly idleCheck: number;
  /** How long `withdraw` waits for an upload under way. */
  readonly closeTimeout: number;
}

const SECOND = 1e3;
const HOUR = 36e5;
const DAY = 864e5;

export const POLICY: Policy = {
  firstDelay: 600 * SECOND,
  backoffBase: SECOND,
  backoffLongest: HOUR,
  retryAfterLongest: 6 * HOUR,
  requestTimeout: 30 * SECOND,
  fetchTries: 3,
  reportAge: 30 * DAY,
  closingGrace: 7 * DAY,
  expiryTries: 10,
  clockTolerance: DAY,
  idleCheck: 900 * SECOND,
  closeTimeout: 2 * SECOND,
};
