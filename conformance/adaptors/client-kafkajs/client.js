// KafkaJS as a client under test, for `coordwire conformance client -- node client.js`.
const readline = require("node:readline");
const { Kafka, logLevel } = require("kafkajs");
const { version } = require("kafkajs/package.json");

const after = (seconds, value) => new Promise((resolve) => setTimeout(resolve, seconds * 1000, value));

function made(settings) {
  return new Kafka({
    clientId: settings["client.id"],
    brokers: settings["bootstrap.servers"].split(","),
    requestTimeout: settings["request.timeout.ms"],
    retry: { initialRetryTime: settings["retry.backoff.ms"], maxRetryTime: settings["retry.backoff.max.ms"], retries: 50 },
    logLevel: logLevel.NOTHING,
  });
}

async function consume(task, report) {
  const settings = task.settings;
  report.values = [];
  const consumer = made(settings).consumer({
    groupId: settings["group.id"],
    sessionTimeout: settings["session.timeout.ms"],
    heartbeatInterval: settings["heartbeat.interval.ms"],
    maxWaitTimeInMs: settings["fetch.max.wait.ms"],
    maxBytes: settings["fetch.max.bytes"],
    maxBytesPerPartition: settings["max.partition.fetch.bytes"],
    readUncommitted: settings["isolation.level"] !== "read_committed",
  });
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [task.topic], fromBeginning: settings["auto.offset.reset"] === "earliest" });
    const done = new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || reject(payload.error));
      if (!task.records) return;
      const eachMessage = async ({ topic, partition, message }) => {
        if (report.values.length >= task.records) return;
        report.values.push(message.value && message.value.toString());
        if (task.commit) await consumer.commitOffsets([{ topic, partition, offset: `${BigInt(message.offset) + 1n}` }]);
        if (report.values.length >= task.records) resolve();
      };
      consumer.run({ autoCommit: false, eachMessage }).catch(reject);
    });
    await Promise.race([done, after(task.seconds)]);
  } finally {
    await Promise.race([consumer.disconnect(), after(2)]);
  }
}

async function produce(task, report) {
  const settings = task.settings;
  const isTransaction = task.do === "transact";
  const producer = made(settings).producer({
    idempotent: isTransaction || settings["enable.idempotence"] === true,
    maxInFlightRequests: 1,
    transactionalId: settings["transactional.id"],
    transactionTimeout: settings["transaction.timeout.ms"],
  });
  try {
    await producer.connect();
    const sender = isTransaction ? await producer.transaction() : producer;
    const messages = task.values.map((value) => ({ value, partition: task.partition }));
    const acks = settings.acks === "all" ? -1 : Number(settings.acks);
    if (messages.length) await sender.send({ topic: task.topic, acks, messages });
    report.sent = messages.length;
    if (!isTransaction) return;
    if (task.offset !== null) {
      const topics = [{ topic: task.topic, partitions: [{ partition: task.partition, offset: `${task.offset}` }] }];
      await sender.sendOffsets({ consumerGroupId: task.group, topics });
    }
    await (task.end === "commit" ? sender.commit() : sender.abort());
  } finally {
    await Promise.race([producer.disconnect(), after(2)]);
  }
}

async function reportOn(task) {
  if (task.do === "name") return { name: `KafkaJS ${version}` };
  const lacks = { "group.protocol": "consumer", "auto.offset.reset": "none" };
  for (const [name, value] of Object.entries(task.settings))
    if (name === "group.instance.id" || lacks[name] === value) return { lacks: `${name}=${value}` };
  const report = {};
  try {
    const late = after(task.seconds + 2).then(() => Promise.reject(new Error("not done in time")));
    await Promise.race([(task.do === "consume" ? consume : produce)(task, report), late]);
  } catch (error) {
    report.error = `${error}`;
  }
  return report;
}

process.on("unhandledRejection", () => {});
(async () => {
  for await (const line of readline.createInterface({ input: process.stdin }))
    console.log(JSON.stringify(await reportOn(JSON.parse(line))));
})();
