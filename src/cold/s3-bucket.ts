/**
 * One bucket as typed calls: the only file that speaks to the AWS SDK. On the thread of the store.
 *
 * Invariants: every call ends, with an answer or a ColdError, within the times below, however often the SDK tries; no
 * call keeps more than the bytes it was given or asked for; keys here are whole (prefix included). The SDK's own
 * checksums stay off: many services that speak S3 refuse them, and the store reads back what it wrote.
 */
import { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
  type GetObjectCommandOutput
} from '@aws-sdk/client-s3'
import { ColdError } from './object-store.ts'
import { wrongSize } from './pieces.ts'
import { isBareNotFound, toColdError } from './s3-errors.ts'

export interface S3Times {
  /** For a connection to be made. */
  readonly connectMs: number
  /** Without a byte on a connection. */
  readonly idleMs: number
  /** From a request to the head of its answer: a part of 8 MiB at 1 Mbit/s takes 67 s. */
  readonly requestMs: number
  /** For one call with all its tries. */
  readonly callMs: number
  /** Tries of one request: the waits between them grow from 50 ms on. */
  readonly tries: number
}

/** Long enough for slow lines, short enough that whoever asked still wants to know. */
export const defaultTimes: S3Times = {
  connectMs: 5_000,
  idleMs: 60_000,
  requestMs: 120_000,
  callMs: 300_000,
  tries: 5
}

export interface S3BucketOptions {
  readonly bucket: string
  readonly region: string
  /** The bucket is named in the path, not in the host name. */
  readonly pathStyle: boolean
  /** `https://host:port`; null: the one of AWS for the region. Checked by parseEndpoint. */
  readonly endpoint: string | null
  /** Null: the SDK looks in the environment, in ~/.aws, and asks the machine's own service. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | null
  readonly times?: Partial<S3Times>
}

/** What an object bears besides its bytes, as the store wrote it. */
export type ObjectMetadata = Readonly<Record<string, string>>

export interface ObjectHead {
  readonly bytes: number
  readonly metadata: ObjectMetadata
  /** Tells one content of the key from another; undefined if the service has none. */
  readonly tag: string | undefined
}

export interface UnfinishedUpload {
  readonly key: string
  readonly uploadId: string
}

export interface UploadedPart {
  readonly number: number
  readonly tag: string
}

/** Connections side by side. Each call uses one; more calls wait for them. */
const CONNECTIONS_MAX = 16
/** An upload that is given up is told so for this long; the next start tells it again. */
const ABORT_MS = 10_000

export class S3Bucket {
  readonly #client: S3Client
  readonly #bucket: string
  readonly #times: S3Times
  readonly #closed = new AbortController()
  readonly #where: string

  constructor(options: S3BucketOptions) {
    const { bucket, region, pathStyle, endpoint, credentials } = options
    this.#bucket = bucket
    this.#times = { ...defaultTimes, ...options.times }
    this.#where = `bucket ${bucket}${endpoint === null ? '' : ` at ${endpoint}`}`
    const { connectMs, idleMs, requestMs, tries } = this.#times
    this.#client = new S3Client({
      region,
      forcePathStyle: pathStyle,
      maxAttempts: tries,
      retryMode: 'standard',
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: {
        connectionTimeout: connectMs,
        socketTimeout: idleMs,
        requestTimeout: requestMs,
        throwOnRequestTimeout: true,
        httpAgent: { maxSockets: CONNECTIONS_MAX },
        httpsAgent: { maxSockets: CONNECTIONS_MAX }
      },
      ...(endpoint !== null && { endpoint }),
      ...(credentials !== null && { credentials: { ...credentials } })
    })
  }

  /** Where it is, without secrets. */
  get where(): string {
    return this.#where
  }

  /** @throws ColdError `missing`, and `refused` if it is the bucket that is not there. */
  async head(key: string): Promise<ObjectHead> {
    const command = new HeadObjectCommand({ Bucket: this.#bucket, Key: key })
    const answer = await this.#call(key, async abortSignal => {
      try {
        return await this.#client.send(command, { abortSignal })
      } catch (error) {
        if (isBareNotFound(error)) await this.#requireBucket(abortSignal)
        throw error
      }
    })
    return { bytes: answer.ContentLength ?? 0, metadata: answer.Metadata ?? {}, tag: answer.ETag }
  }

  /**
   * Reads [position, position + bytes) of the object, while it is the one that `tag` says.
   * A connection that breaks in the middle is tried again, as often as a request is.
   */
  async read(key: string, position: number, bytes: number, tag?: string): Promise<Buffer> {
    const command = new GetObjectCommand({
      Bucket: this.#bucket,
      Key: key,
      Range: `bytes=${position}-${position + bytes - 1}`,
      ...(tag !== undefined && { IfMatch: tag })
    })
    return await this.#call(key, async abortSignal => {
      for (let attempt = 1; ; attempt++) {
        const answer = await this.#client.send(command, { abortSignal })
        const body = bodyOf(answer, key, position, bytes)
        try {
          return await readBody(body, bytes)
        } catch (error) {
          if (attempt === this.#times.tries || abortSignal.aborted) throw error
        }
      }
    })
  }

  async put(key: string, body: Buffer, metadata: ObjectMetadata): Promise<void> {
    const command = new PutObjectCommand({
      Bucket: this.#bucket,
      Key: key,
      Body: body,
      ContentLength: body.length,
      ContentType: 'application/octet-stream',
      Metadata: { ...metadata }
    })
    await this.#call(key, abortSignal => this.#client.send(command, { abortSignal }))
  }

  /** @returns the id of an upload that takes parts until it is completed or aborted. */
  async beginUpload(key: string, metadata: ObjectMetadata): Promise<string> {
    const command = new CreateMultipartUploadCommand({
      Bucket: this.#bucket,
      Key: key,
      ContentType: 'application/octet-stream',
      Metadata: { ...metadata }
    })
    const answer = await this.#call(key, abortSignal => this.#client.send(command, { abortSignal }))
    if (answer.UploadId === undefined) throw this.#odd(key, 'an upload without an id')
    return answer.UploadId
  }

  /** @param number from 1. */
  async putPart({ key, uploadId }: UnfinishedUpload, number: number, body: Buffer): Promise<UploadedPart> {
    const command = new UploadPartCommand({
      Bucket: this.#bucket,
      Key: key,
      UploadId: uploadId,
      PartNumber: number,
      Body: body,
      ContentLength: body.length
    })
    const answer = await this.#call(key, abortSignal => this.#client.send(command, { abortSignal }))
    if (answer.ETag === undefined) throw this.#odd(key, 'a part without a tag')
    return { number, tag: answer.ETag }
  }

  async completeUpload({ key, uploadId }: UnfinishedUpload, parts: readonly UploadedPart[]): Promise<void> {
    const command = new CompleteMultipartUploadCommand({
      Bucket: this.#bucket,
      Key: key,
      UploadId: uploadId,
      MultipartUpload: { Parts: parts.map(({ number, tag }) => ({ PartNumber: number, ETag: tag })) }
    })
    await this.#call(key, abortSignal => this.#client.send(command, { abortSignal }))
  }

  /** Gives an upload up, also while the bucket is being closed. */
  async abortUpload({ key, uploadId }: UnfinishedUpload): Promise<void> {
    const command = new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key: key, UploadId: uploadId })
    try {
      await this.#client.send(command, { abortSignal: AbortSignal.timeout(ABORT_MS) })
    } catch (error) {
      throw this.#translate(error, key)
    }
  }

  /** Uploads that were neither completed nor aborted, of keys that begin with `prefix`. */
  async *unfinishedUploads(prefix: string): AsyncGenerator<UnfinishedUpload> {
    for (let from: { KeyMarker?: string; UploadIdMarker?: string } = {}; ;) {
      const command: ListMultipartUploadsCommand = new ListMultipartUploadsCommand({
        Bucket: this.#bucket,
        Prefix: prefix,
        ...from
      })
      const page = await this.#call(prefix, abortSignal => this.#client.send(command, { abortSignal }))
      for (const { Key: key, UploadId: uploadId } of page.Uploads ?? []) {
        if (key !== undefined && uploadId !== undefined) yield { key, uploadId }
      }
      const { IsTruncated: isTruncated, NextKeyMarker: key, NextUploadIdMarker: id } = page
      if (isTruncated !== true || key === undefined) return
      // A service whose pages do not move would be asked for ever.
      if (key === from.KeyMarker && id === from.UploadIdMarker) throw this.#odd(prefix, 'a list that repeats itself')
      from = { KeyMarker: key, ...(id !== undefined && { UploadIdMarker: id }) }
    }
  }

  /** All keys that begin with `prefix`. */
  async *keys(prefix: string): AsyncGenerator<string> {
    for (let from: { ContinuationToken?: string } = {}; ;) {
      const command: ListObjectsV2Command = new ListObjectsV2Command({ Bucket: this.#bucket, Prefix: prefix, ...from })
      const page = await this.#call(prefix, abortSignal => this.#client.send(command, { abortSignal }))
      for (const { Key: key } of page.Contents ?? []) if (key !== undefined) yield key
      const { IsTruncated: isTruncated, NextContinuationToken: token } = page
      if (isTruncated !== true || token === undefined) return
      if (token === from.ContinuationToken) throw this.#odd(prefix, 'a list that repeats itself')
      from = { ContinuationToken: token }
    }
  }

  /** An object that is not there is no error. */
  async remove(key: string): Promise<void> {
    const command = new DeleteObjectCommand({ Bucket: this.#bucket, Key: key })
    await this.#call(key, abortSignal => this.#client.send(command, { abortSignal }))
  }

  /** Calls in progress end with `unavailable`, and so do all later ones. */
  close(): void {
    this.#closed.abort(new ColdError('unavailable', `${this.#where} is closed`))
    this.#client.destroy()
  }

  async #requireBucket(abortSignal: AbortSignal): Promise<void> {
    try {
      await this.#client.send(new HeadBucketCommand({ Bucket: this.#bucket }), { abortSignal })
    } catch (error) {
      if (isBareNotFound(error)) throw new ColdError('refused', `there is no ${this.#where}`, error)
      throw error
    }
  }

  async #call<T>(key: string, action: (abortSignal: AbortSignal) => Promise<T>): Promise<T> {
    const late = AbortSignal.timeout(this.#times.callMs)
    const abortSignal = AbortSignal.any([this.#closed.signal, late])
    try {
      abortSignal.throwIfAborted()
      return await action(abortSignal)
    } catch (error) {
      if (this.#closed.signal.aborted) throw this.#closed.signal.reason
      if (late.aborted) throw this.#odd(key, `no end within ${this.#times.callMs} ms`, error)
      throw this.#translate(error, key)
    }
  }

  #translate(error: unknown, key: string): ColdError {
    return toColdError(error, `object ${key} in ${this.#where}`)
  }

  #odd(key: string, what: string, cause?: unknown): ColdError {
    return new ColdError('unavailable', `object ${key} in ${this.#where}: ${what}`, cause)
  }
}

/** @throws ColdError unless the answer has exactly the range that was asked for. */
function bodyOf(answer: GetObjectCommandOutput, key: string, position: number, bytes: number): Readable {
  const { Body: body, ContentLength: length } = answer
  if (!(body instanceof Readable)) throw new ColdError('unavailable', `object ${key}: an answer without a body`)
  if (length === undefined || length === bytes) return body
  body.destroy()
  if (length < bytes) throw wrongSize(key, position + length, position + bytes)
  throw new ColdError('refused', `object ${key}: the service does not serve parts of objects`)
}

async function readBody(body: Readable, bytes: number): Promise<Buffer> {
  const target = Buffer.allocUnsafe(bytes)
  let done = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (done + chunk.length > bytes) throw new ColdError('unavailable', 'an answer longer than it said')
    done += chunk.copy(target, done)
  }
  if (done < bytes) throw new ColdError('unavailable', `an answer ended after ${done} of ${bytes} bytes`)
  return target
}
