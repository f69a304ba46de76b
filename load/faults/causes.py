"""What is done to let each kind of fault happen."""

from collections.abc import Awaitable, Callable

from load.faults import causes_cluster, causes_kafka, causes_network, causes_rabbitmq, causes_replicas
from load.faults.world import Span, World

CAUSES: dict[str, Callable[[World], Awaitable[Span]]] = {
    "rabbitmq-restart": causes_rabbitmq.restart,
    "rabbitmq-killed": causes_rabbitmq.kill,
    "memory-alarm": causes_rabbitmq.memory_alarm,
    "disk-alarm": causes_rabbitmq.disk_alarm,
    "connections-closed": causes_rabbitmq.close_connections,
    "queue-deleted": causes_rabbitmq.delete_queue,
    "exchange-deleted": causes_rabbitmq.delete_exchange,
    "permission-exchange": causes_rabbitmq.forbid_exchange,
    "permission-all": causes_rabbitmq.forbid_all,
    "amqp-reset": causes_network.reset_rabbitmq,
    "amqp-black-hole": causes_network.hold_rabbitmq,
    "amqp-slow": causes_network.slow_rabbitmq,
    "kafka-reset": causes_network.reset_kafka,
    "kafka-black-hole": causes_network.hold_kafka,
    "kafka-cut-off": causes_network.cut_off,
    "kafka-slow": causes_network.slow_kafka,
    "kafka-restart": causes_kafka.restart,
    "kafka-killed": causes_kafka.kill,
    "partitions-added": causes_kafka.add_partition,
    "topic-recreated": causes_kafka.recreate_topic,
    "topic-refilled": causes_kafka.refill_topic,
    "log-truncated": causes_kafka.truncate,
    "replica-killed": causes_replicas.kill,
    "replica-terminated": causes_replicas.terminate,
    "replica-stopped": causes_replicas.stop,
    "metric-disk-full": causes_replicas.fill_disk,
    "producers-clock": causes_cluster.change_clocks,
    "consumers-killed": causes_cluster.kill_consumers,
    "kafka-node-hidden": causes_cluster.hide_node,
    "kafka-rolling": causes_cluster.roll_kafka,
    "rabbitmq-rolling": causes_cluster.roll_rabbitmq,
    "partitions-reassigned": causes_cluster.reassign,
}
