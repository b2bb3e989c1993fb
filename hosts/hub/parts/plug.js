// One plug of the Kasa family in a process of its own: to kill it is to pull it out.
//
//   NODE_PATH=FOLDER/node_modules node plug.js ADDRESS PORT MODEL
"use strict";
const { Device } = require("tplink-smarthome-simulator");

const [address, port, model] = process.argv.slice(2);
const device = new Device({
  address,
  port: Number(port),
  model,
  data: { alias: `plug at ${address}`, mac: "50:c7:bf:00:00:01", deviceId: "A100" },
});
device.start().then(() => console.log("ready"));
