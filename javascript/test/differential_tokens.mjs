// What this client asks an issuer, and what it makes of the answer, line by line, for a comparison with Python:
//   {"document", "secret"} is answered by the request, {"document", "secret", "response"} by the token in base64url, or ""; with
//   "forRelay" those for relays.
// Where a document is refused its code is the answer; where a key has a small factor, "".
import { createInterface } from "node:readline";
import { hex, LdpError, parseCampaign, unhex } from "../dist/core.js";
import { tokenRequest } from "../dist/later/tokens.js";

for await (const line of createInterface({ input: process.stdin })) {
  const { document, secret, response, forRelay } = JSON.parse(line);
  let told;
  try {
    const campaign = parseCampaign(document);
    const asked = secret && (await tokenRequest(campaign, unhex(secret), forRelay));
    told = !secret ? campaign.id : !asked ? "" : response ? asked.finish(unhex(response)) : hex(asked.request);
  } catch (error) {
    if (!(error instanceof LdpError)) throw error;
    told = `!${error.code}`;
  }
  process.stdout.write(`${told ?? ""}\n`);
}
