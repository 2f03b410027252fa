/** What an app decides; times are in milliseconds. The names and the values are those of the Python client. */
export interface Policy {
  /**
   * `start` waits a random time up to this before a first try, so that the time of arrival says little. Six hours where the device
   * names a relay, unless the app says otherwise: whoever fetched the campaign in these may have sent what comes.
   */
  readonly firstDelay: number;
  readonly backoffBase: number;
  readonly backoffLongest: number;
  readonly requestTimeout: number;
  /** A report is given up at this age, or when its campaign has been closed for a week; after ten tries. */
  readonly reportAge: number;
}

/** What an app lets its user lose in one campaign; one with a crowd is refused unless the other two are set, too. */
export interface Caps {
  /** Hard cap on the privacy loss. */
  readonly maxEpsilon: number;
  /** With a crowd: on what mixed answers reveal. */
  readonly maxCrowdEpsilon?: number | undefined;
  /** With a crowd, in the place of `maxEpsilon`: on the loss where relay and aggregator work together. */
  readonly maxIfBothCollude?: number | undefined;
}

const SECOND = 1e3;
const HOUR = 36e5;
const DAY = 864e5;

/** The `firstDelay` where the device names a relay. */
export const RELAYED = 6 * HOUR;

export const POLICY: Policy = {
  firstDelay: 600 * SECOND,
  backoffBase: SECOND,
  backoffLongest: HOUR,
  requestTimeout: 30 * SECOND,
  reportAge: 30 * DAY,
};

// No app decides these; the Python client's policy.py has the reasons.
export const RETRY_AFTER_LONGEST = 6 * HOUR;
export const FETCH_TRIES = 3;
export const CLOSING_GRACE = 7 * DAY;
export const EXPIRY_TRIES = 10;
export const CLOCK_TOLERANCE = DAY;
export const FINAL_AFTER = DAY;
export const ASKING_WAIT = 5 * SECOND; // an app starts, or a person waits
export const STATE_AGE = DAY;
export const STATE_RETRY = 600 * SECOND;
export const STATE_WAIT = 5 * SECOND;
export const IDLE_CHECK = 900 * SECOND;
export const CLOSE_TIMEOUT = 2 * SECOND;
