import assert from 'node:assert'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { test } from 'node:test'

// Put your decoder here: the bytes that it writes again; undefined for what it lacks; throws where it refuses.
const decode = (apiKey, direction, version, body) => undefined

test('hostile', async () => {
  const lines = createInterface({ input: createReadStream(`${process.env.CONFORMANCE}/hostile.jsonl`) })
  const failures = []
  let asked = 0
  for await (const line of lines) {
    const v = JSON.parse(line)
    let again
    let refused = false
    try { again = decode(v.api_key, v.direction, v.version, Buffer.from(v.hex, 'hex')) } catch { refused = true }
    if (!refused && again === undefined) continue
    asked++
    const same = !refused && Buffer.from(again).toString('hex') === v.hex
    if (v.verdict === 'invalid' ? !refused : v.verdict === 'valid' && !same) failures.push(`${v.id} is ${v.verdict}`)
  }
  assert(asked, 'nothing was read: put your decoder into decode')
  assert.deepEqual(failures, [])
})
