// A Matter light in a process of its own: killing the process is cutting its power.
//
//   NODE_PATH=FOLDER/node_modules node matter-device.js DIR PORT
//
// DIR has its memory: its controller, and whether it is on. It prints its state ("on"), "ready CODE" with its
// pairing code, and then each command ("told on") and each change of its state.
"use strict";
const { Environment, ServerNode } = require("@matter/main");
const { OnOffServer } = require("@matter/main/behaviors/on-off");
const { OnOffLightDevice } = require("@matter/main/devices/on-off-light");

const [dir, port] = process.argv.slice(2);
const { vars } = Environment.default;
vars.set("storage.path", dir);
vars.set("log.level", process.env.MATTER_LOG_LEVEL ?? "fatal");
// A parent that waits for "ready" alone does not read on.
process.stdout.on("error", () => {});

class Relay extends OnOffServer {
  on() {
    console.log("told on");
    return super.on();
  }

  off() {
    console.log("told off");
    return super.off();
  }
}

async function main() {
  const node = await ServerNode.create({ id: "light", network: { port: Number(port) } });
  const light = await node.add(OnOffLightDevice.with(Relay), { id: "light" });
  light.events.onOff.onOff$Changed.on((isOn) => console.log(isOn ? "on" : "off"));
  await node.start();
  console.log(light.state.onOff.onOff ? "on" : "off");
  console.log("ready", node.state.commissioning.pairingCodes.manualPairingCode);
}

main();
