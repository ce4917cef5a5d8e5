/** SaslAuthenticate: a token of the mechanism that was agreed on. A client that fails is told why, and closed. Main thread. */
import { saslAuthenticate } from '../../../wire/kafka/apis/sasl-authenticate.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { handlerOf, type KafkaHandler } from '../handler.ts'

const NO_BYTES: Buffer = Buffer.alloc(0)

export const saslAuthenticateHandler: KafkaHandler = handlerOf(
  saslAuthenticate,
  call => {
    const { body, client, services } = call
    if (!client.sasl.isUnderWay) {
      const errorMessage = 'a mechanism has to be agreed on before, by SaslHandshake'
      return call.answer({ errorCode: kafkaErrors.ILLEGAL_SASL_STATE.code, errorMessage, authBytes: NO_BYTES })
    }
    const step = client.sasl.take(body.authBytes)
    if (step.kind !== 'refused') {
      return call.answer({ errorCode: kafkaErrors.NONE.code, errorMessage: null, authBytes: step.reply })
    }
    const errorCode = kafkaErrors.SASL_AUTHENTICATION_FAILED.code
    call.answer({ errorCode, errorMessage: step.told, authBytes: NO_BYTES })
    services.refusedLogins.note(client, step.claim, step.told)
    client.refuse('authFailed', step.told)
  },
  { isOpenToAll: true }
)
