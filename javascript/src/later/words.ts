// What people are told in words, loaded where somebody reads.
export { ledgerOf, sentReports } from "../device/ledger.js";
export { preview } from "../preview.js";
export { asked, explained, ledgerText, said, wayOf } from "../words.js";
