/** SaslHandshake: which mechanism the client will use. Version 0 is followed by bare tokens. Main thread. */
import { saslHandshake } from '../../../wire/kafka/apis/sasl-handshake.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { handlerOf, type KafkaHandler } from '../handler.ts'
import { exchangeOf, mechanisms } from '../sasl-mechanisms.ts'

const NOBODY_ASKS = "authentication is disabled: set the client's security.protocol to PLAINTEXT, or with TLS to SSL"

export const saslHandshakeHandler: KafkaHandler = handlerOf(
  saslHandshake,
  call => {
    const { body, client, services, version } = call
    const claim = { mechanism: body.mechanism, user: null }
    if (client.sasl.isUnderWay || client.sasl.who !== null) {
      if (services.settings.auth === 'disabled') services.refusedLogins.note(client, claim, NOBODY_ASKS)
      return call.answer({ errorCode: kafkaErrors.ILLEGAL_SASL_STATE.code, mechanisms })
    }
    const exchange = exchangeOf(body.mechanism, services.broker.keys)
    if (exchange === null) {
      services.refusedLogins.note(client, claim, `mechanisms here are ${mechanisms.join(', ')}`)
      return call.answer({ errorCode: kafkaErrors.UNSUPPORTED_SASL_MECHANISM.code, mechanisms })
    }
    client.sasl.begin(exchange, version === 0)
    call.answer({ errorCode: kafkaErrors.NONE.code, mechanisms })
  },
  { isOpenToAll: true }
)
