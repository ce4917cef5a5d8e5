/**
 * AlterConfigs, which sets all settings of a topic, and IncrementalAlterConfigs, which sets those named. Nothing of a resource
 * is changed if anything of it is refused, and a setting that is named more than once is: nobody can say what it is to be.
 * Main thread.
 */
import { authorise } from '../../../model/access.ts'
import { BrokerError } from '../../../model/errors.ts'
import type { Pace } from '../request-turns.ts'
import type { TopicConfig, TopicConfigPatch } from '../../../model/topic.ts'
import { alterConfigs, incrementalAlterConfigs } from '../../../wire/kafka/apis/alter-configs.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { resourceTypes } from '../config-resources.ts'
import { longChangeOf, type KafkaHandler, type KafkaServices } from '../handler.ts'
import type { Principal } from '../../../model/principal.ts'
import { refusalOfMany } from '../named-topics.ts'
import { toldOfConfig } from '../refusals.ts'
import { repeatedNames } from '../repeated-names.ts'
import { changedList, fallbackPatch, patchOf } from '../topic-configs.ts'

/** What is done to one setting. */
const operations = { set: 0, delete: 1, append: 2, subtract: 3 } as const

export const alterConfigsHandler: KafkaHandler = longChangeOf(alterConfigs, async call => {
  const { settings } = call.services
  const responses = await alterAll(call, call.body.resources, resource =>
    merged([fallbackPatch(settings), ...resource.configs.map(({ name, value }) => patchOf(name, value, settings))])
  )
  await call.answerInTurns({ responses })
})

export const incrementalAlterConfigsHandler: KafkaHandler = longChangeOf(incrementalAlterConfigs, async call => {
  const responses = await alterAll(call, call.body.resources, (resource, current) =>
    merged(resource.configs.map(change => changeOf(change, current, call.services)))
  )
  await call.answerInTurns({ responses })
})

function merged(patches: readonly TopicConfigPatch[]): TopicConfigPatch {
  return Object.assign({}, ...patches) as TopicConfigPatch
}

interface Change {
  readonly name: string
  readonly configOperation: number
  readonly value: string | null
}

/** @throws BrokerError FIELD_INVALID */
function changeOf(change: Change, current: TopicConfig, { settings }: KafkaServices): TopicConfigPatch {
  const { name, configOperation, value } = change
  switch (configOperation) {
    case operations.set:
      return patchOf(name, value, settings)
    case operations.delete:
      return patchOf(name, null, settings)
    case operations.append:
    case operations.subtract:
      return patchOf(name, changedList(name, current, value ?? '', configOperation === operations.append), settings)
    default:
      throw new BrokerError('FIELD_INVALID', { field: name, problem: `has operation ${configOperation}` })
  }
}

interface Asked {
  readonly who: Principal
  readonly services: KafkaServices
  readonly pace: Pace
  readonly body: { readonly validateOnly: boolean }
}

interface Resource {
  readonly resourceType: number
  readonly resourceName: string
  readonly configs: readonly { readonly name: string }[]
}

/** Of each resource for itself, one after the other. @param patchFrom what changes of a topic. */
function alterAll<Given extends Resource>(
  asked: Asked,
  resources: readonly Given[],
  patchFrom: (resource: Given, current: TopicConfig) => TopicConfigPatch
) {
  const refusal = refusalOfMany('resources', resources.length)
  return asked.pace.inOrder(resources, resource => {
    const { resourceType, resourceName } = resource
    if (refusal !== null) return { resourceType, resourceName, ...refusal }
    return alter(asked, resource, current => patchFrom(resource, current))
  })
}

async function alter(
  { who, services: { broker }, body }: Asked,
  { resourceType, resourceName, configs }: Resource,
  patchFrom: (current: TopicConfig) => TopicConfigPatch
) {
  const place = { resourceType, resourceName }
  if (resourceType !== resourceTypes.topic) {
    const errorMessage = 'only the configuration of topics can be changed; that of the broker is set at its start'
    return { ...place, errorCode: kafkaErrors.INVALID_REQUEST.code, errorMessage }
  }
  if (repeatedNames(configs).size > 0) {
    const errorMessage = 'the request names a setting of this topic more than once'
    return { ...place, errorCode: kafkaErrors.INVALID_REQUEST.code, errorMessage }
  }
  try {
    authorise(who, 'change topic config', resourceName)
    const patch = patchFrom(broker.topicConfig(who, resourceName))
    await broker.changeTopicConfig(who, resourceName, patch, { isDryRun: body.validateOnly })
    return { ...place, errorCode: kafkaErrors.NONE.code, errorMessage: null }
  } catch (error) {
    return { ...place, ...toldOfConfig(error) }
  }
}
