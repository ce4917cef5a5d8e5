/**
 * The settings of tiered storage that have a form of their own: `s3://bucket/prefix` and the address of a service.
 * Pure, any thread. What is not exactly of the form is refused in one line that a person can act on.
 */
import { isFolderPart } from './keys.ts'
import { ColdError } from './object-store.ts'

const SCHEME = 's3://'
/** With a key (keys.ts) it stays below the 1024 bytes of an S3 key. */
const PREFIX_CHARACTERS_MAX = 500

const bucketPattern = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const ipPattern = /^\d+\.\d+\.\d+\.\d+$/

export interface BucketAddress {
  readonly bucket: string
  /** Stands before each key: empty, or ends with a slash. */
  readonly prefix: string
}

/**
 * Reads `s3://bucket`, `s3://bucket/prefix` or `s3://bucket/longer/prefix`; one slash at the end changes nothing.
 * @throws ColdError `refused`.
 */
export function parseBucketAddress(text: string): BucketAddress {
  if (!text.startsWith(SCHEME)) throw refusal(text, `does not begin with ${SCHEME}`)
  const [bucket = '', ...parts] = text.slice(SCHEME.length).split('/')
  if (!isBucketName(bucket)) {
    throw refusal(text, `the name of a bucket is 3 to 63 of a-z 0-9 . -, and '${bucket}' is not`)
  }
  if (parts.at(-1) === '') parts.pop()
  const prefix = parts.map(part => `${part}/`).join('')
  if (!parts.every(isFolderPart) || prefix.length > PREFIX_CHARACTERS_MAX) {
    throw refusal(text, `a prefix is up to ${PREFIX_CHARACTERS_MAX} of A-Z a-z 0-9 . _ - ~ in parts with one / between`)
  }
  return { bucket, prefix }
}

/**
 * Checks the address of a service: http or https, host, perhaps a port and a path.
 * @returns as given. @throws ColdError `refused`, without what may be a secret in it.
 */
export function parseEndpoint(text: string): string {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new ColdError('refused', 'the endpoint of cold storage is not an address such as https://s3.example')
  }
  if (url.username !== '' || url.password !== '') {
    throw new ColdError('refused', `the endpoint ${url.host} bears credentials: give them in the environment`)
  }
  if (url.search !== '' || url.hash !== '') {
    throw new ColdError('refused', `the endpoint ${url.host} has a query or a fragment, which services do not have`)
  }
  return text
}

/** As S3 has it for buckets made today. */
function isBucketName(name: string): boolean {
  return bucketPattern.test(name) && !/\.\.|\.-|-\./.test(name) && !ipPattern.test(name)
}

function refusal(text: string, problem: string): ColdError {
  return new ColdError('refused', `cold storage '${text}': ${problem}`)
}
