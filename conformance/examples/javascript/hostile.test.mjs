import assert from 'node:assert'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { test } from 'node:test'

// Put your decoder here: the bytes that it writes again; undefined for what it lacks; throws where it refuses.
const decode = (apiKey, direction, version, body) => undefined

test('hostile', async () => {
  const lines = createInterface({ input: createReadStream(`${process.env.CONFORMANCE}/hostile.jsonl`) })
  for await (const line of lines) {
    const v = JSON.parse(line)
    const read = () => decode(v.api_key, v.direction, v.version, Buffer.from(v.hex, 'hex'))
    let again
    try { again = read() } catch (refused) { assert.notEqual(v.verdict, 'valid', `${v.id}: ${refused}`); continue }
    if (again === undefined) continue
    assert.notEqual(v.verdict, 'invalid', v.id)
    if (v.verdict === 'valid') assert.equal(Buffer.from(again).toString('hex'), v.hex, v.id)
  }
})
