// A campaign that asks the same population time after time, each device once in its life: protocols/ldp_protocols/document/windows.py.
import { check, isInstant, isText, whole, type Rule } from "./checks.js";
import type { Windows } from "./types.js";

const MOST_WINDOWS = 4096;
const LATEST_YEAR = 9000;
const MINUTES: Record<string, number> = { W: 10080, D: 1440, H: 60, M: 1 };
const YEAR = 365 * 1440; // minutes
/** A window's answers are counted for so long after its end: a device that answered in time may have been offline. */
export const WINDOW_GRACE = 7 * 864e5;

/** Minutes of one window; NaN where its length is not one number of weeks, days, hours or minutes. */
function minutesOf({ length }: Windows): number {
  const [, number, unit] = /^P(?=\d+[WD]|T\d+[HM])T?([1-9]\d{0,3})(.)$/.exec(length) ?? [];
  return Number(number) * MINUTES[unit!]!;
}

/** When a window opens, in milliseconds since 1970; it ends when the next one opens. */
export const opensAt = (windows: Windows, window: number): number =>
  Date.parse(windows.from) + window * minutesOf(windows) * 6e4;

/** The rule of a campaign's windows. */
export const areWindows: Rule = (windows) =>
  check(windows, {
    from: isInstant,
    length: (text) => isText(text) && minutesOf(windows) > 0,
    count: (count) =>
      whole(2, MOST_WINDOWS)(count) && parseInt(windows.from) + (count * minutesOf(windows)) / YEAR <= LATEST_YEAR,
  });
