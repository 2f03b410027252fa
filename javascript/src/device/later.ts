// What only some campaigns and some visits need, loaded when one does.
import { LdpError } from "../errors.js";
import { publicBase } from "./network.js";

export const tokens = () => import("../later/tokens.js");
export const words = () => import("../later/words.js");
export const sealing = () => import("../later/sealing.js");

export const crowds = () => import("../later/crowd.js").catch(unreachable);

/** What cannot be loaded now. */
export function unreachable(): never {
  throw new LdpError("unreachable");
}

/** Why this device cannot seal an upload and send it to a relay, null where it can, or need not. */
export async function unsealable(
  gateway: string | undefined,
  relay: string | undefined,
  url: string,
): Promise<LdpError | null> {
  if (!gateway) return null;
  if (!relay) return new LdpError("no-relay");
  try {
    publicBase(url, relay);
  } catch (error) {
    return error as LdpError;
  }
  try {
    await (await sealing()).seal(gateway, relay, {}, new Uint8Array());
    return null;
  } catch (error) {
    return error instanceof LdpError ? error : new LdpError("not-installed", "it takes @hpke/core and X25519");
  }
}
