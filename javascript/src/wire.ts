// Reports and uploads: their ids, and their one encoding in msgpack.
import { concat, littleEndian, utf8 } from "./bytes.js";
import type { Campaign } from "./document/types.js";
import { hmac } from "./exact/sha256.js";

export const MEDIA_TYPE = "application/vnd.ldp-bayes.reports+msgpack";

export interface Report {
  /** Index of the question in the document; in a series window * questions + index. */
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

/** One byte below a limit, else a code and a big-endian number of the least of 1, 2 or 4 bytes; 2^power at least. */
function head(value: number, below: number, short: number, code: number, power = 0): number[] {
  if (value < below) return [short + value];
  while (value >= 256 ** (1 << power)) power++;
  return [code + power, ...littleEndian(value, 1 << power).reverse()];
}

const binary = (bytes: Uint8Array): number[] => [...head(bytes.length, 0, 0, 0xc4), ...bytes];

/** The one encoding of one device's reports, each of which answers a question of its own. */
export function encodeUpload(reports: readonly Report[]): Uint8Array {
  const blocks = [...reports]
    .sort((a, b) => a.question - b.question)
    .map(({ question, id, payload }) => [0x93, ...head(question, 128, 0, 0xcc), ...binary(id), ...binary(payload)]);
  return concat([0x92, 1], head(blocks.length, 16, 0x90, 0xdb, 1), ...blocks);
}
