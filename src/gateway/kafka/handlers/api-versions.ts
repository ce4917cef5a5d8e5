/**
 * ApiVersions: what this broker speaks. The first that most clients ask, before they authenticate; one that asks in a version
 * of later days is answered in version 0, with what there is (KIP-511). Main thread.
 */
import { apiVersions } from '../../../wire/kafka/apis/api-versions.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { handlerOf, type KafkaHandler } from '../handler.ts'

/** Names and versions of client software as KIP-511 allows them. */
const SOFTWARE = /^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$/
/** First version with the name of the software. */
const SOFTWARE_SINCE = 3

export const apiVersionsHandler: KafkaHandler = handlerOf(
  apiVersions,
  call => {
    const { version, body } = call
    const isNamed = SOFTWARE.test(body.clientSoftwareName) && SOFTWARE.test(body.clientSoftwareVersion)
    if (version >= SOFTWARE_SINCE && !isNamed)
      return call.answer({ errorCode: kafkaErrors.INVALID_REQUEST.code, apiKeys: [] })
    call.answer({ errorCode: kafkaErrors.NONE.code, apiKeys: advertised(call.services.handlers) })
  },
  { isOpenToAll: true }
)

/** The versions of every API of the table, by key. */
export function advertised(
  handlers: ReadonlyMap<number, KafkaHandler>
): { apiKey: number; minVersion: number; maxVersion: number }[] {
  return [...handlers.values()]
    .map(({ api: { key, versions } }) => ({ apiKey: key, minVersion: versions.first, maxVersion: versions.last }))
    .sort((one, other) => one.apiKey - other.apiKey)
}
