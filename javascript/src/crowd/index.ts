// For apps of the core alone, whose `parseCampaign` refuses a campaign with a crowd without this: devices load it themselves.
export { checkCrowd } from "../later/crowd.js";
