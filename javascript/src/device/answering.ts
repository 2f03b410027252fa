// What answers, delivers and classifies: given with the device, or loaded once somebody has agreed.
import { stateOf, waits, type Install } from "./install.js";
import { unreachable } from "./later.js";

export type Answering = typeof import("../later/answering.js");

/** Those parts. Throws LdpError `unreachable` where they cannot be loaded now. */
export const answering = async ({ parts }: Install): Promise<Answering> =>
  (parts as Answering | undefined) ?? import("../later/answering.js").catch(unreachable);

/** One step of the delivery. Milliseconds until the next one is due; undefined where nothing waits. */
export async function step(install: Install, firstDelay: number): Promise<number | undefined> {
  const waiting = waits(await stateOf(install));
  return waiting.length ? (await answering(install)).deliver(install, firstDelay, waiting) : undefined;
}
