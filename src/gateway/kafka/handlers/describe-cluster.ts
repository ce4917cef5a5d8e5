/** DescribeCluster: one broker, which is the controller. Main thread. */
import { describeCluster } from '../../../wire/kafka/apis/describe-cluster.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { handlerOf, type KafkaHandler } from '../handler.ts'
import { NODE_ID } from '../node.ts'

/** Brokers, as clients see them; 2 are the controllers of a cluster, which no client can reach here. */
const BROKERS = 1

export const describeClusterHandler: KafkaHandler = handlerOf(describeCluster, call => {
  const { clusterId } = call.services
  const { endpointType } = call.body
  if (endpointType !== BROKERS) {
    const errorMessage = `endpoints of type ${endpointType} are not told: 1, the brokers, are`
    const errorCode = kafkaErrors.INVALID_REQUEST.code
    return call.answer({ errorCode, errorMessage, clusterId, controllerId: NODE_ID, brokers: [] })
  }
  const { host, port } = call.client.advertised
  call.answer({
    errorCode: kafkaErrors.NONE.code,
    clusterId,
    controllerId: NODE_ID,
    brokers: [{ brokerId: NODE_ID, host, port }]
  })
})
