/** The path of the gateway's WebSocket (DeviceProtocol.md, Transport). */
export const path = "/mss/1";
