import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseBucketAddress, parseEndpoint } from '../../../src/cold/cold-settings.ts'
import { isCold } from './store-contract.ts'

describe('the address of a bucket', () => {
  const good: readonly [string, string, string][] = [
    ['s3://cold', 'cold', ''],
    ['s3://cold/', 'cold', ''],
    ['s3://cold/broker-1', 'cold', 'broker-1/'],
    ['s3://my.cold-1/a/b_c~d/', 'my.cold-1', 'a/b_c~d/']
  ]
  for (const [text, bucket, prefix] of good) {
    test(`${text} is bucket ${bucket}, prefix '${prefix}'`, () =>
      assert.deepEqual(parseBucketAddress(text), { bucket, prefix }))
  }

  const bad = [
    '',
    'cold',
    'S3://cold',
    's3:/cold',
    'https://cold',
    's3://',
    's3:///prefix',
    's3://ab',
    's3://Cold',
    's3://cold_1',
    's3://-cold',
    's3://cold-',
    's3://co..ld',
    's3://co.-ld',
    's3://10.0.0.1',
    `s3://${'a'.repeat(64)}`,
    's3://key:secret@cold/prefix',
    's3://cold//',
    's3://cold//a',
    's3://cold/a//b',
    's3://cold/../a',
    's3://cold/a b',
    's3://cold/a?b=c',
    's3://cold/a.log',
    ` s3://cold`,
    `s3://cold/${'a'.repeat(200)}/${'b'.repeat(200)}/${'c'.repeat(200)}`
  ]
  for (const text of bad) {
    test(`'${text.slice(0, 40)}' is refused`, () => assert.throws(() => parseBucketAddress(text), isCold('refused')))
  }
})

describe('the endpoint of a bucket', () => {
  for (const text of ['https://s3.example', 'http://127.0.0.1:9000', 'https://host:1234/path', 'http://[::1]:9000']) {
    test(`${text} is one`, () => assert.equal(parseEndpoint(text), text))
  }

  for (const text of ['', 's3.example', 'ftp://s3.example', 'https://', 'https://h/?a=b', 'https://h/#a']) {
    test(`'${text}' is none`, () => assert.throws(() => parseEndpoint(text), isCold('refused')))
  }

  test('one with credentials is refused without repeating them', () => {
    assert.throws(
      () => parseEndpoint('https://someone:hush@s3.example'),
      (error: unknown) => isCold('refused')(error) && !String(error).includes('hush')
    )
  })
})
