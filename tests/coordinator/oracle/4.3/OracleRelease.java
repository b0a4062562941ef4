package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.StreamsGroupDescribeRequest;
import org.apache.kafka.common.requests.TxnOffsetCommitRequest;
import org.apache.kafka.common.requests.TxnOffsetCommitResponse;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** What the classes of 4.3 have in a form of their own. */
final class OracleRelease {
    static final LogContext LOG = new LogContext();
    static final BufferSupplier BUFFERS = BufferSupplier.NO_CACHING;

    private OracleRelease() {
    }

    static GroupCoordinatorService service(
        GroupCoordinatorConfig config, CoordinatorRuntime<GroupCoordinatorShard, CoordinatorRecord> runtime,
        GroupCoordinatorMetrics metrics, GroupConfigManager groups, OraclePersister persister, OracleClock clock
    ) {
        return new GroupCoordinatorService(
            LOG, config, runtime, metrics, groups, persister, clock, persister);
    }

    static GroupConfigManager groups(GroupCoordinatorConfig config, ShareGroupConfig shares) {
        return new GroupConfigManager(config.extractGroupConfigMap(shares), config, shares);
    }

    static CompletableFuture<List<StreamsGroupDescribeResponseData.DescribedGroup>> describe(
        GroupCoordinatorService service, RequestContext context, StreamsGroupDescribeRequest request
    ) {
        return service.streamsGroupDescribe(context, request.data().groupIds());
    }

    static CompletableFuture<? extends AbstractResponse> commit(
        GroupCoordinatorService service, OracleTopics topics, RequestContext context, TxnOffsetCommitRequest request
    ) {
        TxnOffsetCommitResponse.Builder builder = new TxnOffsetCommitResponse.Builder();
        List<TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic> known = new ArrayList<>();
        request.data().topics().forEach(topic -> {
            TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic valid =
                new TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic().setName(topic.name());
            topic.partitions().forEach(partition -> {
                if (topics.has(topic.name(), partition.partitionIndex())) {
                    valid.partitions().add(partition);
                } else {
                    builder.addPartition(topic.name(), partition.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
                }
            });
            if (!valid.partitions().isEmpty()) {
                known.add(valid);
            }
        });
        if (known.isEmpty()) {
            return CompletableFuture.completedFuture(builder.build());
        }
        TxnOffsetCommitRequestData data = request.data().duplicate().setTopics(known);
        return service.commitTransactionalOffsets(context, data, BUFFERS).handle((results, error) -> {
            TxnOffsetCommitResponse response = error != null ? request.getErrorResponse(error)
                : builder.merge(results).build();
            if (request.version() < 2) {
                response.data().topics().forEach(topic -> topic.partitions().forEach(partition -> {
                    if (partition.errorCode() == Errors.COORDINATOR_LOAD_IN_PROGRESS.code()) {
                        partition.setErrorCode(Errors.COORDINATOR_NOT_AVAILABLE.code());
                    }
                }));
            }
            return response;
        });
    }
}
