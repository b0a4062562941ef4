// What each client of the matrix does, with kafkajs; see ../python_clients.py.
const { Kafka, logLevel } = require("kafkajs");

const partitions = 6;
const [action, ...given] = process.argv.slice(2);

function made(bootstrap) {
  return new Kafka({ clientId: "kafkajs", brokers: bootstrap.split(","), logLevel: logLevel.NOTHING });
}

async function produce(bootstrap, topic, count) {
  const producer = made(bootstrap).producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  const messages = Array.from({ length: Number(count) }, (_, number) => ({ key: `${number}`, value: `${number}` }));
  await producer.send({ topic, messages });
  await producer.disconnect();
}

async function consume(protocol, bootstrap, topic, groupId, isolation, stops) {
  const readUncommitted = isolation !== "read_committed";
  const consumer = made(bootstrap).consumer({ groupId, readUncommitted });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  let left = Number(stops);
  await new Promise((resolve) =>
    consumer.run({
      eachMessage: async ({ partition, message }) => {
        console.log(partition, message.offset, message.value.toString());
        if (message.value.toString() === "stop" && --left === 0) setTimeout(resolve, 100);
      },
    })
  );
  await consumer.disconnect();
}

async function transact(bootstrap, topic, input, transactionalId, group) {
  const ledger = async () => {
    const producer = made(bootstrap).producer({ transactionalId, idempotent: true, maxInFlightRequests: 1, retry: { retries: 3 } });
    await producer.connect();
    return producer;
  };
  const begin = async (producer, value) => {
    const transaction = await producer.transaction();
    const messages = Array.from({ length: partitions }, (_, partition) => ({ partition, value }));
    await transaction.send({ topic, messages });
    return transaction;
  };
  const first = await ledger();
  await (await begin(first, "one")).commit();
  await (await begin(first, "lost")).abort();
  const two = await begin(first, "two");
  await two.sendOffsets({
    consumerGroupId: group,
    topics: [{ topic: input, partitions: [{ partition: 0, offset: "5" }] }],
  });
  await two.commit();
  const second = await ledger();
  try {
    const open = await begin(first, "fenced");
    await (await begin(second, "next")).abort();
    await open.commit();
    console.log("fenced: no");
  } catch (error) {
    console.log("fenced:", error.type || error.name);
  }
  await second.disconnect();
  await first.disconnect();
}

({ produce, consume, transact })[action](...given).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  }
);
