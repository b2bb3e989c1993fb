// A bridge from Matter lights, and all other devices that are on or off, to MQTT: a controller, for as long as it runs.
//
//   NODE_PATH=FOLDER/node_modules node matter.js BROKER DIR NAME=CODE ...
//
// BROKER is a URL: mqtt://127.0.0.1:1883. DIR has the keys and the devices that the controller knows. An unknown device
// is commissioned by its pairing CODE: it must be on the network, and wait for that. The first endpoint of a device
// that is on or off counts.
//
// | topic | message |
// |---|---|
// | matter/NAME/set | to the bridge: "on" or "off" |
// | matter/NAME/ask | to the bridge: anything, to have the state published |
// | matter/NAME/state | "on" or "off", as the device answered just now |
// | matter/NAME/there | "online" or "offline", retained; also as a last will |
//
// A device does one thing at a time: it is commanded, then it is asked, and its answer is published. It is asked after
// each command, when it reports a change, on request, and each EVERY. Without an answer it is offline.
//
// A command acts within STALL + DEADLINE + WINDOW, 4 s, since it reached the bridge, or never:
//
// - A command that came while this process stood still for longer than STALL is dropped.
// - It is sent once, as a timed interaction: the device answers that it is there, and then takes the command within
//   WINDOW by its own clock. After DEADLINE it is given up. The session is closed, or matter.js would transmit messages
//   that are on their way for many seconds, and nothing else is sent to the device until WINDOW has passed.
// - A command that waits for its turn is replaced by the next one.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const mqtt = require("mqtt");
const { Environment, Millis, Seconds, ServerNode } = require("@matter/main");
const { OnOffClient } = require("@matter/main/behaviors/on-off");
const { OnOff } = require("@matter/main/clusters/on-off");
const { ControllerBehavior } = require("@matter/main/node");
const { Invoke, Peer, Read, Subscribe } = require("@matter/main/protocol");

const EVERY = 2_000;
const DEADLINE = 2_000;
const WINDOW = 1_000;
const STALL = 1_000;

const [broker, dir, ...lights] = process.argv.slice(2);
const { vars } = Environment.default;
vars.set("storage.path", dir);
vars.set("log.level", process.env.MATTER_LOG_LEVEL ?? "fatal");
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// After this process stood still, messages that arrive may have waited for it.
let [ran, deaf] = [Date.now(), 0];
const stoodStill = () => Date.now() - ran > STALL;
setInterval(() => {
  if (stoodStill()) deaf = Date.now() + STALL;
  ran = Date.now();
}, STALL / 4);

/** What a device understands, through one session at a time. */
class Light {
  constructor(node, endpoint) {
    this.node = node;
    this.at = { endpoint, cluster: OnOff };
    this.attribute = Read.Attribute({ ...this.at, attributes: "onOff" });
  }

  async tell(state, until) {
    const command = Invoke.ConcreteCommandRequest({ ...this.at, command: state });
    const invoke = Invoke({ commands: [command], timeout: Millis(WINDOW) });
    for await (const _ of this.node.interaction.invoke(invoke, within(until - Date.now())));
  }

  async ask() {
    const read = { ...Read(this.attribute), includeKnownVersions: true };
    for await (const chunk of this.node.interaction.read(read, within(DEADLINE))) {
      for (const it of chunk) if (it.kind === "attr-value") return it.value ? "on" : "off";
    }
    throw new Error("no such attribute");
  }

  /** Has it report changes by itself. */
  async listen(changed) {
    if (this.subscription) return;
    const request = Subscribe({ minIntervalFloor: Seconds(0), maxIntervalCeiling: Seconds(30) }, this.attribute);
    const updated = async (reports) => {
      for await (const _ of reports);
      changed();
    };
    const closed = () => (this.subscription = undefined);
    this.subscription = await this.node.interaction.subscribe({ ...request, updated, closed }, within(DEADLINE));
  }

  /** Ends the session, and all that waits in it to be transmitted again. */
  async hangUp() {
    this.subscription = undefined;
    await this.node.env.get(Peer).disconnect(new Error("no answer"));
  }
}

function within(ms) {
  const left = Math.max(ms, 1);
  return { abort: AbortSignal.timeout(left), connectionTimeout: Millis(left) };
}

async function bridge(name, light) {
  const topic = (it) => `matter/${name}/${it}`;
  const will = { topic: topic("there"), payload: "offline", retain: true };
  const client = mqtt.connect(broker, { clean: true, keepalive: 3, reconnectPeriod: 500, queueQoSZero: false, will });
  let [wanted, isAsked, wake] = [undefined, true, () => {}];
  const turn = () => {
    isAsked = true;
    wake();
  };
  const say = (is) => client.publish(topic("there"), is, { retain: true });
  let logged;
  const log = (it) => {
    if (it !== logged) console.error(`${name}: ${it}`);
    logged = it;
  };
  client.on("error", (error) => log(error.message));
  client.on("connect", () => {
    client.subscribe([topic("set"), topic("ask")]);
    turn();
  });
  client.on("message", (at, payload, { retain }) => {
    const state = payload.toString();
    const isCommand = at === topic("set") && (state === "on" || state === "off");
    if (isCommand && !retain && !stoodStill() && Date.now() > deaf) wanted = { state, until: Date.now() + DEADLINE };
    turn();
  });
  for (;;) {
    if (!isAsked) await Promise.race([new Promise((done) => (wake = done)), sleep(EVERY)]);
    const told = wanted;
    [wanted, isAsked] = [undefined, false];
    let sent = 0;
    try {
      if (told && Date.now() < told.until) {
        sent = told.until + WINDOW;
        await light.tell(told.state, told.until);
        sent = 0;
      }
      const state = await light.ask();
      log("online");
      say("online");
      client.publish(topic("state"), state);
      await light.listen(turn).catch(() => {});
    } catch (error) {
      log(error.message);
      say("offline");
      await light.hangUp().catch(() => {});
      await sleep(sent - Date.now());
    }
  }
}

async function main() {
  const root = ServerNode.RootEndpoint.with(ControllerBehavior);
  const controller = await ServerNode.create(root, {
    id: "bridge",
    network: { port: 0 },
    commissioning: { enabled: false },
    controller: { adminFabricLabel: "bridge" },
  });
  await controller.start();
  const file = path.join(dir, "lights.json");
  const known = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file)) : {};
  for (const light of lights) {
    const [name, pairingCode] = light.split("=");
    if (!known[name]) {
      const node = await controller.peers.commission({ pairingCode, autoSubscribe: false, timeout: Seconds(60) });
      const { number } = [...node.endpoints].find((it) => it.behaviors.has(OnOffClient));
      known[name] = [node.id, number];
      fs.writeFileSync(file, JSON.stringify(known));
    }
    const [id, endpoint] = known[name];
    bridge(name, new Light(controller.peers.get(id), endpoint));
    console.log("ready", name);
  }
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
