import * as client from "./mss-client.js";

console.log(Object.keys(client));
