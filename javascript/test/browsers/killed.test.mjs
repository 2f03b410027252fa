import { killed } from "./killed.mjs";

killed(20);
