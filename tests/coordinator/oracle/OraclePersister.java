package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.util.PartitionMetadataClient;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/** A persister that prints each call, and gives it the answer that a command has; it has the ends of logs too. */
final class OraclePersister implements Persister, PartitionMetadataClient {
    private record Call(CompletableFuture<?> future, Consumer<ByteBuffer> answer) { }

    private final StringBuilder output;
    private final Map<Integer, Call> calls = new HashMap<>();
    private final Map<TopicPartition, OffsetResponse> ends = new HashMap<>();
    private int number = 0;

    OraclePersister(StringBuilder output) {
        this.output = output;
    }

    /** persisted NUMBER HEX|ERROR [TOPIC:PARTITION:ERROR:OFFSET...] */
    void persisted(String[] words) {
        ends.clear();
        for (int index = 3; index < words.length; index++) {
            String[] parts = words[index].split(":");
            ends.put(new TopicPartition(parts[0], Integer.parseInt(parts[1])),
                new OffsetResponse(Long.parseLong(parts[3]), Errors.valueOf(parts[2])));
        }
        Call call = calls.remove(Integer.parseInt(words[1]));
        if (words[2].matches("[0-9a-f]*")) {
            call.answer.accept(ByteBuffer.wrap(HexFormat.of().parseHex(words[2])));
        } else {
            call.future.completeExceptionally(Errors.valueOf(words[2]).exception());
        }
    }

    @Override
    public Map<TopicPartition, CompletableFuture<OffsetResponse>> listLatestOffsets(Set<TopicPartition> places) {
        Map<TopicPartition, CompletableFuture<OffsetResponse>> found = new HashMap<>();
        places.forEach(place -> found.put(place, CompletableFuture.completedFuture(
            ends.getOrDefault(place, new OffsetResponse(-1, Errors.UNKNOWN_TOPIC_OR_PARTITION)))));
        return found;
    }

    @Override
    public void close() {
    }

    private <T> CompletableFuture<T> call(ApiKeys api, short version, ApiMessage request, java.util.function.Function<ByteBuffer, T> read) {
        ByteBuffer bytes = MessageUtil.toByteBufferAccessor(request, version).buffer();
        byte[] body = new byte[bytes.remaining()];
        bytes.get(body);
        output.append("persist ").append(++number).append(' ').append(api.id).append(' ').append(Oracle.hex(body)).append('\n');
        CompletableFuture<T> future = new CompletableFuture<>();
        calls.put(number, new Call(future, buffer -> future.complete(read.apply(buffer))));
        return future;
    }

    @Override
    public CompletableFuture<InitializeShareGroupStateResult> initializeState(InitializeShareGroupStateParameters request) {
        GroupTopicPartitionData<PartitionStateData> data = request.groupTopicPartitionData();
        List<InitializeShareGroupStateRequestData.InitializeStateData> topics = new ArrayList<>();
        data.topicsData().forEach(topic -> topics.add(new InitializeShareGroupStateRequestData.InitializeStateData()
            .setTopicId(topic.topicId()).setPartitions(topic.partitions().stream().map(partition ->
                new InitializeShareGroupStateRequestData.PartitionData().setPartition(partition.partition())
                    .setStateEpoch(partition.stateEpoch()).setStartOffset(partition.startOffset())).toList())));
        return call(ApiKeys.INITIALIZE_SHARE_GROUP_STATE, (short) 0,
            new InitializeShareGroupStateRequestData().setGroupId(data.groupId()).setTopics(topics),
            buffer -> InitializeShareGroupStateResult.from(
                new InitializeShareGroupStateResponseData(new ByteBufferAccessor(buffer), (short) 0)));
    }

    @Override
    public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
        GroupTopicPartitionData<PartitionIdData> data = request.groupTopicPartitionData();
        List<DeleteShareGroupStateRequestData.DeleteStateData> topics = new ArrayList<>();
        data.topicsData().forEach(topic -> topics.add(new DeleteShareGroupStateRequestData.DeleteStateData()
            .setTopicId(topic.topicId()).setPartitions(topic.partitions().stream().map(partition ->
                new DeleteShareGroupStateRequestData.PartitionData().setPartition(partition.partition())).toList())));
        return call(ApiKeys.DELETE_SHARE_GROUP_STATE, (short) 0,
            new DeleteShareGroupStateRequestData().setGroupId(data.groupId()).setTopics(topics),
            buffer -> DeleteShareGroupStateResult.from(
                new DeleteShareGroupStateResponseData(new ByteBufferAccessor(buffer), (short) 0)));
    }

    @Override
    public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(ReadShareGroupStateSummaryParameters request) {
        GroupTopicPartitionData<PartitionIdLeaderEpochData> data = request.groupTopicPartitionData();
        List<ReadShareGroupStateSummaryRequestData.ReadStateSummaryData> topics = new ArrayList<>();
        data.topicsData().forEach(topic -> topics.add(new ReadShareGroupStateSummaryRequestData.ReadStateSummaryData()
            .setTopicId(topic.topicId()).setPartitions(topic.partitions().stream().map(partition ->
                new ReadShareGroupStateSummaryRequestData.PartitionData().setPartition(partition.partition())).toList())));
        return call(ApiKeys.READ_SHARE_GROUP_STATE_SUMMARY, (short) 1,
            new ReadShareGroupStateSummaryRequestData().setGroupId(data.groupId()).setTopics(topics),
            buffer -> ReadShareGroupStateSummaryResult.from(
                new ReadShareGroupStateSummaryResponseData(new ByteBufferAccessor(buffer), (short) 1)));
    }

    @Override
    public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
        throw new UnsupportedOperationException();
    }

    @Override
    public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void stop() {
    }
}
