/** A broker that cannot start says why in one line and ends with a code other than 0; it harms nothing. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { crc32c } from '../../src/base/crc32c.ts'
import { BLOCK_BYTES, SLOT_GROUPS_AT } from '../../src/log/slot-format.ts'
import { startBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { failToStart, smallFlags } from '../support/start-failure.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { FORMAT_VERSION } from '../../workers/store/schema.ts'

test('what is in use by a running broker', async t => {
  const running = await startBroker(t)
  const httpAddress = new URL(running.url).host
  const binaryAddress = `${running.es01.host}:${running.es01.port}`

  await t.test('its HTTP address is refused to a broker on another directory', async t => {
    for (const engine of ['uws', 'node']) {
      const flags = smallFlags(temporaryDirectory(t), { '--bind': httpAddress, '--http-engine': engine })
      const line = await failToStart(t, flags)
      assert.ok(line.includes(httpAddress) && line.includes('in use') && line.includes('--bind'), line)
    }
  })
  await t.test('its binary address is refused to a broker on another directory', async t => {
    const line = await failToStart(t, smallFlags(temporaryDirectory(t), { '--bind-binary': binaryAddress }))
    assert.ok(line.includes(binaryAddress) && line.includes('in use') && line.includes('--bind-binary'), line)
  })
  await t.test('its data directory is refused, by name and with its owner', async t => {
    const line = await failToStart(t, smallFlags(running.dataDir))
    assert.ok(
      line.includes(running.dataDir) &&
        line.includes('in use by another millrace process') &&
        line.includes(String(process.pid)),
      line
    )
  })
  await t.test('and it serves on', async () => {
    const api = new HttpApi(running.url)
    await api.createTopic('alive')
    assert.deepEqual(await api.produce('alive', [{ value: 'v' }]), [{ partition: 0, offset: 0 }])
  })
})

test('a port that a foreign program has is refused', async t => {
  const foreign = createServer().listen(0, '127.0.0.1')
  t.after(() => foreign.close())
  await once(foreign, 'listening')
  const address = `127.0.0.1:${(foreign.address() as AddressInfo).port}`
  for (const flag of ['--bind', '--bind-binary', '--bind-kafka']) {
    const line = await failToStart(t, smallFlags(temporaryDirectory(t), { [flag]: address }))
    assert.ok(line.includes(address) && line.includes('in use') && line.includes(flag), line)
    const dataDir = join(temporaryDirectory(t), 'new', 'data')
    assert.equal(await failToStart(t, smallFlags(dataDir, { [flag]: address })), line, 'a new directory or an old one')
    assert.ok(!existsSync(dirname(dataDir)), 'and no new one is made')
  }
})

test('a data directory that cannot be used', async t => {
  // A file in the way fails for every user, root included, as a missing permission does not.
  await t.test('because a file is in its place', async t => {
    const path = join(temporaryDirectory(t), 'file')
    writeFileSync(path, 'mine')
    const line = await failToStart(t, smallFlags(path))
    assert.ok(line.includes(path) && line.includes('not a directory'), line)
    assert.equal(readFileSync(path, 'utf8'), 'mine')
  })
  await t.test('because a file is in its path', async t => {
    const path = join(temporaryDirectory(t), 'file')
    writeFileSync(path, 'mine')
    const line = await failToStart(t, smallFlags(join(path, 'data')))
    assert.ok(line.includes(path) && line.includes('not a directory'), line)
  })
  await t.test('because its file system takes no files', async t => {
    const line = await failToStart(t, smallFlags('/proc/millrace'))
    assert.ok(line.includes('/proc/millrace') && line.includes('cannot be used'), line)
  })
  await t.test('because the journal of a shard has a file in its place', async t => {
    const dataDir = temporaryDirectory(t)
    mkdirSync(join(dataDir, 'journal'))
    writeFileSync(join(dataDir, 'journal', '000'), 'mine')
    const line = await failToStart(t, smallFlags(dataDir, { '--shards': '1' }))
    assert.ok(line.includes('shard 0'), line)
    assert.equal(readFileSync(join(dataDir, 'journal', '000'), 'utf8'), 'mine')
  })
})

test('a format on disk that is newer than this version is refused and left as it is', async t => {
  const dataDir = temporaryDirectory(t)
  const broker = await startBroker(t, { dataDir, flags: { '--shards': '1' } })
  await new HttpApi(broker.url).createTopic('kept')
  await new HttpApi(broker.url).produce('kept', [{ value: 'v' }])
  await broker.stop()

  await t.test('in the journal', async t => {
    const directory = join(dataDir, 'journal', '000')
    const files = readdirSync(directory).map(name => join(directory, name))
    const before = files.map(path => ({ path, bytes: readFileSync(path) }))
    t.after(() => before.forEach(({ path, bytes }) => writeFileSync(path, bytes)))
    for (const { path, bytes } of before) writeFileSync(path, asNewerSlot(bytes))
    const changed = files.map(path => readFileSync(path))
    const line = await failToStart(t, smallFlags(dataDir))
    assert.match(line, /journal format 2 .*newer version.*up to 1/)
    assert.ok(files.every((path, i) => readFileSync(path).equals(changed[i] ?? Buffer.alloc(0))))
  })
  await t.test('in the store', async t => {
    const store = new DatabaseSync(join(dataDir, 'store.db'))
    store.exec(`PRAGMA user_version = ${FORMAT_VERSION + 1}`)
    const line = await failToStart(t, smallFlags(dataDir))
    const versions = `(store format ${FORMAT_VERSION + 1}; this one reads up to ${FORMAT_VERSION})`
    assert.ok(line.includes(`store.db was written by a newer version ${versions}`), line)
    store.exec(`PRAGMA user_version = ${FORMAT_VERSION}`)
    store.close()
  })
  await t.test('and is served once the version is right again', async t => {
    const again = await startBroker(t, { dataDir })
    assert.deepEqual(
      (await new HttpApi(again.url).consumeAll('kept', 0)).map(record => record.value),
      ['v']
    )
  })
})

/** A slot whose header blocks say one version more, their checksums right. */
function asNewerSlot(slot: Buffer): Buffer {
  const newer = Buffer.from(slot)
  for (let at = 0; at < SLOT_GROUPS_AT && newer.toString('latin1', at, at + 8) === 'MILLSLOT'; at += BLOCK_BYTES) {
    newer.writeUInt32BE(newer.readUInt32BE(at + 8) + 1, at + 8)
    newer.writeUInt32BE(crc32c(newer, at, at + BLOCK_BYTES - 4), at + BLOCK_BYTES - 4)
  }
  return newer
}

test('a fault of the configuration ends with code 2', async t => {
  const folder = temporaryDirectory(t)
  const file = join(folder, 'broken.toml')
  const cases: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['an unknown flag, with the nearest that exists', ['--dta-dir', folder], /--dta-dir.*--data-dir/],
    ['a value out of range', ['--max-record-bytes', '33554433'], /max.record.bytes.*33554433.*32 MiB/],
    ['an open address without authentication', ['--bind', '0.0.0.0:0'], /0\.0\.0\.0:0.*--allow-remote-unauthenticated/],
    ['one TLS file without the other', ['--tls-cert', 'cert.pem'], /tls.cert/],
    ['a feature that comes later', ['--raft-node-id', '1'], /raft.node.id.*not available/],
    ['a configuration file that is no TOML', ['--config', file], /broken\.toml/],
    ['a configuration file that is not there', ['--config', join(folder, 'none.toml')], /none\.toml/]
  ]
  writeFileSync(file, 'data_dir = "unterminated\n')
  for (const [what, args, text] of cases) {
    await t.test(what, async t => assert.match(await failToStart(t, args, { code: 2 }), text))
  }
  await t.test('and makes no directory', () => assert.deepEqual(readdirSync(folder), ['broken.toml']))
})
