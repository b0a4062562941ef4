package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ShareGroupDescribeResponseData;
import org.apache.kafka.common.message.DescribeShareGroupOffsetsResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.*;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;

/** What a broker does around its coordinator: it resolves topics, and puts the coordinator's answer in the version's form. */
final class OracleRequests {
    private final GroupCoordinatorService service;
    private final OracleTopics topics;
    private final StringBuilder output;

    OracleRequests(GroupCoordinatorService service, OracleTopics topics, StringBuilder output) {
        this.service = service;
        this.topics = topics;
        this.output = output;
    }

    CompletableFuture<? extends AbstractResponse> handle(RequestContext context, AbstractRequest request) {
        short version = request.version();
        if (request instanceof JoinGroupRequest) {
            return service.joinGroup(context, ((JoinGroupRequest) request).data(), OracleRelease.BUFFERS)
                .thenApply(data -> new JoinGroupResponse(data, version));
        } else if (request instanceof SyncGroupRequest) {
            SyncGroupRequest sync = (SyncGroupRequest) request;
            if (!sync.areMandatoryProtocolTypeAndNamePresent()) {
                return done(sync.getErrorResponse(Errors.INCONSISTENT_GROUP_PROTOCOL.exception()));
            }
            return service.syncGroup(context, sync.data(), OracleRelease.BUFFERS).thenApply(SyncGroupResponse::new);
        } else if (request instanceof HeartbeatRequest) {
            return service.heartbeat(context, ((HeartbeatRequest) request).data()).thenApply(HeartbeatResponse::new);
        } else if (request instanceof LeaveGroupRequest) {
            return service.leaveGroup(context, ((LeaveGroupRequest) request).normalizedData())
                .thenApply(data -> new LeaveGroupResponse(data, version));
        } else if (request instanceof ConsumerGroupHeartbeatRequest) {
            return service.consumerGroupHeartbeat(context, ((ConsumerGroupHeartbeatRequest) request).data())
                .thenApply(ConsumerGroupHeartbeatResponse::new);
        } else if (request instanceof ConsumerGroupDescribeRequest) {
            return service.consumerGroupDescribe(context, ((ConsumerGroupDescribeRequest) request).data().groupIds())
                .thenApply(groups -> new ConsumerGroupDescribeResponse(
                    new ConsumerGroupDescribeResponseData().setGroups(groups)));
        } else if (request instanceof StreamsGroupHeartbeatRequest) {
            return service.streamsGroupHeartbeat(context, ((StreamsGroupHeartbeatRequest) request).data())
                .thenApply(result -> {
                    created(context.correlationId(), result.creatableTopics().values());
                    return new StreamsGroupHeartbeatResponse(result.data());
                });
        } else if (request instanceof StreamsGroupDescribeRequest) {
            return OracleRelease.describe(service, context, (StreamsGroupDescribeRequest) request)
                .thenApply(groups -> new StreamsGroupDescribeResponse(
                    new StreamsGroupDescribeResponseData().setGroups(groups)));
        } else if (request instanceof DescribeGroupsRequest) {
            return service.describeGroups(context, ((DescribeGroupsRequest) request).data().groups())
                .thenApply(groups -> new DescribeGroupsResponse(new DescribeGroupsResponseData().setGroups(groups)));
        } else if (request instanceof ListGroupsRequest) {
            return service.listGroups(context, ((ListGroupsRequest) request).data()).thenApply(ListGroupsResponse::new);
        } else if (request instanceof DeleteGroupsRequest) {
            List<String> groups = ((DeleteGroupsRequest) request).data().groupsNames().stream()
                .distinct().collect(Collectors.toList());
            return service.deleteGroups(context, groups, OracleRelease.BUFFERS)
                .thenApply(results -> new DeleteGroupsResponse(new DeleteGroupsResponseData().setResults(results)));
        } else if (request instanceof OffsetCommitRequest) {
            return commit(context, (OffsetCommitRequest) request);
        } else if (request instanceof OffsetFetchRequest) {
            return fetch(context, (OffsetFetchRequest) request);
        } else if (request instanceof OffsetDeleteRequest) {
            return delete(context, (OffsetDeleteRequest) request);
        } else if (request instanceof TxnOffsetCommitRequest) {
            return OracleRelease.commit(service, topics, context, (TxnOffsetCommitRequest) request);
        }
        if (request instanceof ShareGroupHeartbeatRequest heartbeat) {
            return service.shareGroupHeartbeat(context, heartbeat.data()).thenApply(ShareGroupHeartbeatResponse::new);
        } else if (request instanceof ShareGroupDescribeRequest describe) {
            return service.shareGroupDescribe(context, describe.data().groupIds())
                .thenApply(groups -> new ShareGroupDescribeResponse(new ShareGroupDescribeResponseData().setGroups(groups)));
        } else if (request instanceof AlterShareGroupOffsetsRequest alter) {
            return service.alterShareGroupOffsets(context, alter.data().groupId(), alter.data())
                .thenApply(AlterShareGroupOffsetsResponse::new);
        } else if (request instanceof DeleteShareGroupOffsetsRequest delete) {
            return service.deleteShareGroupOffsets(context, delete.data()).thenApply(DeleteShareGroupOffsetsResponse::new);
        } else if (request instanceof DescribeShareGroupOffsetsRequest describe) {
            return offsets(context, describe);
        }
        throw new IllegalArgumentException("no coordinator's request: " + request.apiKey());
    }

    /** The topics that an answer asks the broker to create, as one line, sorted. */
    private void created(int ticket, Collection<CreateTopicsRequestData.CreatableTopic> topics) {
        if (!topics.isEmpty()) {
            output.append("create ").append(ticket).append(topics.stream().map(topic -> {
                String configs = topic.configs().stream().map(config -> name(config.name()) + "=" + name(config.value()))
                    .sorted().collect(Collectors.joining(","));
                return " " + name(topic.name()) + ":" + topic.numPartitions() + ":" + topic.replicationFactor() + ":" + configs;
            }).sorted().collect(Collectors.joining())).append('\n');
        }
    }

    private static String name(String text) {
        return Oracle.hex(text.getBytes(StandardCharsets.UTF_8));
    }

    private CompletableFuture<? extends AbstractResponse> offsets(
        RequestContext context, DescribeShareGroupOffsetsRequest request
    ) {
        List<CompletableFuture<DescribeShareGroupOffsetsResponseData.DescribeShareGroupOffsetsResponseGroup>> groups = new ArrayList<>();
        request.groups().forEach(group -> groups.add((group.topics() == null
            ? service.describeShareGroupAllOffsets(context, group)
            : group.topics().isEmpty() ? CompletableFuture.completedFuture(
                new DescribeShareGroupOffsetsResponseData.DescribeShareGroupOffsetsResponseGroup().setGroupId(group.groupId()))
            : service.describeShareGroupOffsets(context, group)).handle((found, error) -> {
                Errors code = error == null ? Errors.NONE : Errors.forException(error);
                return error == null ? found : new DescribeShareGroupOffsetsResponseData.DescribeShareGroupOffsetsResponseGroup()
                    .setGroupId(group.groupId()).setErrorCode(code.code()).setErrorMessage(code.message());
            })));
        return CompletableFuture.allOf(groups.toArray(new CompletableFuture<?>[0])).thenApply(none ->
            new DescribeShareGroupOffsetsResponse(new DescribeShareGroupOffsetsResponseData()
                .setGroups(groups.stream().map(CompletableFuture::join).collect(Collectors.toList()))));
    }

    private CompletableFuture<? extends AbstractResponse> commit(RequestContext context, OffsetCommitRequest request) {
        boolean byId = OffsetCommitResponse.useTopicIds(request.version());
        OffsetCommitResponse.Builder builder = OffsetCommitResponse.newBuilder(byId);
        List<OffsetCommitRequestData.OffsetCommitRequestTopic> known = new ArrayList<>();
        request.data().topics().forEach(topic -> {
            if (byId) {
                topic.setName(topics.name(topic.topicId()));
            } else {
                topic.setTopicId(topics.id(topic.name()));
            }
            if (byId && topic.name().isEmpty()) {
                builder.addPartitions(topic.topicId(), topic.name(), topic.partitions(),
                    OffsetCommitRequestData.OffsetCommitRequestPartition::partitionIndex, Errors.UNKNOWN_TOPIC_ID);
            } else if (topic.topicId().equals(Uuid.ZERO_UUID)) {
                builder.addPartitions(Uuid.ZERO_UUID, topic.name(), topic.partitions(),
                    OffsetCommitRequestData.OffsetCommitRequestPartition::partitionIndex,
                    Errors.UNKNOWN_TOPIC_OR_PARTITION);
            } else {
                OffsetCommitRequestData.OffsetCommitRequestTopic valid =
                    new OffsetCommitRequestData.OffsetCommitRequestTopic()
                        .setTopicId(topic.topicId()).setName(topic.name());
                topic.partitions().forEach(partition -> {
                    if (topics.has(topic.name(), partition.partitionIndex())) {
                        valid.partitions().add(partition);
                    } else {
                        builder.addPartition(topic.topicId(), topic.name(), partition.partitionIndex(),
                            Errors.UNKNOWN_TOPIC_OR_PARTITION);
                    }
                });
                if (!valid.partitions().isEmpty()) {
                    known.add(valid);
                }
            }
        });
        if (known.isEmpty()) {
            return done(builder.build());
        }
        OffsetCommitRequestData data = request.data().duplicate().setTopics(known);
        return service.commitOffsets(context, data, OracleRelease.BUFFERS).handle((results, error) ->
            error != null ? request.getErrorResponse(error) : builder.merge(results).build());
    }

    private CompletableFuture<? extends AbstractResponse> fetch(RequestContext context, OffsetFetchRequest request) {
        List<CompletableFuture<OffsetFetchResponseData.OffsetFetchResponseGroup>> groups = new ArrayList<>();
        request.groups().forEach(group -> groups.add(OffsetFetchRequest.requestAllOffsets(group)
            ? fetchAll(context, group, request.requireStable()) : fetch(context, group, request.requireStable())));
        return CompletableFuture.allOf(groups.toArray(new CompletableFuture<?>[0])).handle((none, error) ->
            new OffsetFetchResponse.Builder(groups.stream().map(CompletableFuture::join).collect(Collectors.toList()))
                .build(request.version()));
    }

    private CompletableFuture<OffsetFetchResponseData.OffsetFetchResponseGroup> fetchAll(
        RequestContext context, OffsetFetchRequestData.OffsetFetchRequestGroup group, boolean stable
    ) {
        return service.fetchOffsets(context, group, stable).handle((found, error) -> {
            if (error != null) {
                return OffsetFetchResponse.groupError(group, Errors.forException(error), context.apiVersion());
            }
            if (found.errorCode() == 0 && OffsetFetchRequest.useTopicIds(context.apiVersion())) {
                found.topics().forEach(topic -> topic.setTopicId(topics.id(topic.name())));
                found.setTopics(found.topics().stream()
                    .filter(topic -> !topic.topicId().equals(Uuid.ZERO_UUID)).collect(Collectors.toList()));
            }
            return found;
        });
    }

    private CompletableFuture<OffsetFetchResponseData.OffsetFetchResponseGroup> fetch(
        RequestContext context, OffsetFetchRequestData.OffsetFetchRequestGroup group, boolean stable
    ) {
        boolean byId = OffsetFetchRequest.useTopicIds(context.apiVersion());
        List<OffsetFetchRequestData.OffsetFetchRequestTopics> known = new ArrayList<>();
        List<OffsetFetchResponseData.OffsetFetchResponseTopics> unknown = new ArrayList<>();
        group.topics().forEach(topic -> {
            if (byId) {
                topic.setName(topics.name(topic.topicId()));
            }
            if (byId && topic.name().isEmpty()) {
                unknown.add(new OffsetFetchResponseData.OffsetFetchResponseTopics()
                    .setTopicId(topic.topicId()).setName(topic.name())
                    .setPartitions(topic.partitionIndexes().stream().map(index ->
                        new OffsetFetchResponseData.OffsetFetchResponsePartitions().setPartitionIndex(index)
                            .setCommittedOffset(-1).setErrorCode(Errors.UNKNOWN_TOPIC_ID.code()))
                        .collect(Collectors.toList())));
            } else {
                known.add(topic);
            }
        });
        return service.fetchOffsets(context, group.duplicate().setTopics(known), stable).handle((found, error) -> {
            if (error != null) {
                return OffsetFetchResponse.groupError(group, Errors.forException(error), context.apiVersion());
            }
            if (found.errorCode() == 0) {
                List<OffsetFetchResponseData.OffsetFetchResponseTopics> all = new ArrayList<>(found.topics());
                all.addAll(unknown);
                found.setTopics(all);
            }
            return found;
        });
    }

    private CompletableFuture<? extends AbstractResponse> delete(RequestContext context, OffsetDeleteRequest request) {
        OffsetDeleteResponse.Builder builder = new OffsetDeleteResponse.Builder();
        OffsetDeleteRequestData.OffsetDeleteRequestTopicCollection known =
            new OffsetDeleteRequestData.OffsetDeleteRequestTopicCollection();
        request.data().topics().forEach(topic -> {
            OffsetDeleteRequestData.OffsetDeleteRequestTopic valid =
                new OffsetDeleteRequestData.OffsetDeleteRequestTopic().setName(topic.name());
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
        OffsetDeleteRequestData data = new OffsetDeleteRequestData().setGroupId(request.data().groupId()).setTopics(known);
        return service.deleteOffsets(context, data, OracleRelease.BUFFERS).handle((response, error) ->
            error != null ? request.getErrorResponse(error) : builder.merge(response).build());
    }

    private static CompletableFuture<AbstractResponse> done(AbstractResponse response) {
        return CompletableFuture.completedFuture(response);
    }
}
