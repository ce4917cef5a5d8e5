/**
 * The clients of the product against a broker whose certificate a private authority vouches for: they are told of it with
 * --tls-ca or `tls.ca` and do all of their work, and without it they send nothing and say why. Runs dist/.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { BinaryClient, PipelinedClient } from '../../src/client/binary/index.ts'
import { connectEs01 } from '../../src/client/es01/client.ts'
import { startBroker } from '../support/broker.ts'
import { makeVouchedCertificate, writeCertificate } from '../support/certificate.ts'
import { atEnd } from '../support/clean-up.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { run } from './cli-stage.ts'

test('command line and ES01 clients work over TLS with the authority they are told of, and with no other', async t => {
  const folder = temporaryDirectory(t)
  const made = makeVouchedCertificate('private')
  const files = writeCertificate(folder, made)
  const authority = join(folder, 'authority.pem')
  writeFileSync(authority, made.ca)
  const other = makeVouchedCertificate('other')
  writeFileSync(join(folder, 'other.pem'), other.ca)
  const { server, es01 } = await startBroker(t, { flags: { '--tls-cert': files.cert, '--tls-key': files.key } })
  const stage = { folder, env: { ES_BROKER: `https://${server.httpAddress}` } }
  const trusting = async (line: string): Promise<string> => {
    const { code, stdout, stderr } = await run(stage, `${line} --tls-ca ${authority}`)
    assert.deepEqual([code, stderr], [0, ''], line)
    return stdout
  }

  await t.test('topic create, produce, consume and topic describe', async () => {
    await trusting('topic create --name orders --partitions 2')
    assert.equal(
      await trusting('produce --topic orders --partition 1 --key k --value secret'),
      'partition=1 offset=0\n'
    )
    assert.match(await trusting('consume --topic orders --partition 1 --offset 0'), /^offset=0 key=k value=secret\n/)
    assert.match(await trusting('topic describe --name orders'), /\npartition=1 start_offset=0 end_offset=1 /)
  })
  await t.test('produce and consume over ES01', async () => {
    const client = await connectEs01({ ...es01, tls: { ca: made.ca } })
    atEnd(t, () => client.destroy())
    await client.ping()
    assert.deepEqual(await client.produce('orders', [{ value: 'binary', partition: 1 }]), [
      { partition: 1, offset: 1, duplicate: false }
    ])
    const read = { topic: 'orders', partition: 1, offset: 0, maxRecords: 10, maxBytes: 1 << 20 }
    assert.deepEqual(
      (await client.consume(read)).records.map(({ value }) => value.toString()),
      ['secret', 'binary']
    )
  })
  await t.test('produce, consume and batches of the client library, with gzip', async () => {
    const options = { ...es01, tls: { ca: made.ca }, gzip: true }
    const client = new BinaryClient(options)
    const batching = new PipelinedClient(options)
    atEnd(t, () => client.destroy())
    atEnd(t, () => batching.destroy())
    assert.equal((await client.produce('orders', [{ value: 'library', partition: 1 }]))[0]?.offset, 2)
    const sent = ['a', 'b', 'c'].map(value => batching.send('orders', { value, partition: 1 }))
    assert.deepEqual(
      (await Promise.all(sent)).map(({ offset }) => offset),
      [3, 4, 5]
    )
    const read = { topic: 'orders', partition: 1, offset: 2, maxRecords: 10, maxBytes: 1 << 20 }
    assert.deepEqual(
      (await client.consume(read)).records.map(({ value }) => value.toString()),
      ['library', 'a', 'b', 'c']
    )
  })
  await t.test('the command line refuses an authority that does not vouch for it, and none', async () => {
    for (const words of ['', `--tls-ca ${join(folder, 'other.pem')}`]) {
      for (const command of [
        'produce --topic orders --value x',
        'consume --topic orders --partition 0',
        'topic list'
      ]) {
        const { code, stdout, stderr } = await run(stage, `${command} ${words}`)
        assert.deepEqual([code, stdout], [3, ''])
        assert.match(stderr, /^millrace: the certificate of https:\S+ is not trusted: [^\n]*--tls-ca[^\n]*\n$/)
      }
    }
  })
  await t.test(
    'the ES01 client and the client library refuse them with a text that names the certificate, and nothing was written',
    async () => {
      for (const tls of [{}, { ca: other.ca }]) {
        const library = new BinaryClient({ ...es01, tls })
        atEnd(t, () => library.destroy())
        await assert.rejects(library.produce('orders', [{ value: 'x' }]), {
          name: 'ClientError',
          kind: 'untrusted',
          written: 'no',
          message: /certificate/
        })
        await assert.rejects(connectEs01({ ...es01, tls, token: 'esk_secret' }), {
          name: 'Es01Error',
          kind: 'connection',
          written: 'no',
          message: /^cannot connect to 127\.0\.0\.1:\d+: .*certificate/
        })
      }
    }
  )
})
