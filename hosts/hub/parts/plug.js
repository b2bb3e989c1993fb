// A plug of the Kasa family in a process of its own: killing the process is unplugging it.
//
//   NODE_PATH=FOLDER/node_modules node plug.js ADDRESS PORT MODEL
//
// It prints "ready", and then each command that comes.
"use strict";
const { Device } = require("tplink-smarthome-simulator");

const [address, port, model] = process.argv.slice(2);
const [, , c, d] = address.split(".").map(Number);
const hex = (byte) => byte.toString(16).padStart(2, "0");
const device = new Device({
  address,
  port: Number(port),
  model,
  data: {
    alias: `plug at ${address}`,
    mac: `50:c7:bf:00:${hex(c)}:${hex(d)}`,
    deviceId: `A100${hex(c)}${hex(d)}`,
  },
});
// A parent that waits for "ready" alone does not read on.
process.stdout.on("error", () => {});
device.deviceNetworking.on("data", ({ message }) => {
  if (message.includes("set_relay_state")) console.log(message);
});
device.start().then(() => console.log("ready"));
