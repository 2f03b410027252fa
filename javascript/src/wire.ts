// Reports and uploads: their ids, and their one encoding in msgpack.
import { concat, littleEndian, utf8 } from "./bytes.js";
import type { Campaign } from "./document/types.js";
import { hmac } from "./exact/sha256.js";

export const MEDIA_TYPE = "application/vnd.ldp-bayes.reports+msgpack";

export interface Report {
  /** Index of the question in the document. */
  readonly question: number;
  /** 16 bytes. */
  readonly id: Uint8Array;
  readonly payload: Uint8Array;
}

/** What keyed messages about a group's answer begin with: the campaign's id, and the slot. */
export const slot = (campaign: Campaign, group: number): Uint8Array =>
  concat(utf8(campaign.id), littleEndian(campaign.privacy.answers === "all" ? group : 0, 4));

export const reportId = (secret: Uint8Array, campaign: Campaign, group: number): Uint8Array =>
  hmac(secret, slot(campaign, group)).slice(0, 16);

/** One byte below a limit, else a code and a big-endian number of 1, 2 or 4 bytes: the least. */
function head(value: number, below: number, short: number, codes: readonly (number | undefined)[]): Uint8Array {
  if (value < below) return Uint8Array.of(short + value);
  const power = codes.findIndex((code, i) => code && value < 256 ** (1 << i));
  return Uint8Array.of(codes[power]!, ...littleEndian(value, 1 << power).reverse());
}

const list = (length: number): Uint8Array => head(length, 16, 0x90, [, 0xdc]);
const binary = (bytes: Uint8Array): Uint8Array => concat(head(bytes.length, 0, 0, [0xc4, 0xc5, 0xc6]), bytes);

/** The one encoding of one device's reports, each of which answers a question of its own. */
export function encodeUpload(reports: readonly Report[]): Uint8Array {
  const blocks = [...reports]
    .sort((a, b) => a.question - b.question)
    .map(({ question, id, payload }) =>
      concat(list(3), head(question, 128, 0, [0xcc, 0xcd]), binary(id), binary(payload)),
    );
  return concat(list(2), Uint8Array.of(1), list(blocks.length), ...blocks);
}
