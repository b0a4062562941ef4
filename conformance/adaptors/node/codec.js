// KafkaJS as a codec: it reads responses alone, and does not write them again.
const { readdirSync, existsSync } = require('node:fs')
const { dirname, join } = require('node:path')
const { createInterface } = require('node:readline')

const folder = join(dirname(require.resolve('kafkajs')), 'src', 'protocol', 'requests')
const { version: release } = require('kafkajs/package.json')
const keys = require(join(folder, 'apiKeys'))
const names = new Map(Object.entries(keys).map(([name, key]) => [key, name.toLowerCase()]))
const folders = new Map(readdirSync(folder).map((name) => [name.toLowerCase(), name]))

const decoder = (key, version) => {
  const path = join(folder, folders.get(names.get(key)) ?? '-', `v${version}`, 'response.js')
  return existsSync(path) ? require(path) : undefined
}

const answer = async (request) => {
  if (request.do === 'name') return { name: `kafkajs ${release} (Node)` }
  if (request.do !== 'read') return { lacks: "Kafka's JSON" }
  const found = request.direction === 'response' ? decoder(request.api_key, request.version) : undefined
  if (found === undefined) return { lacks: 'the message, the version or the direction' }
  try {
    await found.decode(Buffer.from(request.hex, 'hex'))
    return {}
  } catch (error) {
    return { refused: String(error) }
  }
}

const main = async () => {
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`)
  }
}

main()
