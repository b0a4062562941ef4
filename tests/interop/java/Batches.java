import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Utils;

/**
 * What Kafka finds in the bytes of a records field, whether they are sound or not.
 *
 * <p>Rules: standard input is int32 count, then fields, each behind its int32 length; each is answered by JSON behind
 * its int32 length: what splitting into batches says, how many bytes the whole batches take, and of each batch its
 * header's fields, what the check of size and checksum says, what reading its records says, and the records read
 * until then. "OK", or the exception's name and text; a header that can't be read is "header_error".
 */
public final class Batches {
    private static final String ERRORS = "org.apache.kafka.common.errors.";
    private static final int LEGACY_ATTRIBUTES = 17;
    private static final int ATTRIBUTES = 21;

    private Batches() {
    }

    public static void main(String[] args) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        ObjectMapper mapper = new ObjectMapper();
        int count = in.readInt();
        for (int each = 0; each < count; each++) {
            byte[] answer = mapper.writeValueAsBytes(found(in.readNBytes(in.readInt())));
            out.writeInt(answer.length);
            out.write(answer);
        }
        out.flush();
    }

    private static Map<String, Object> found(byte[] field) {
        Map<String, Object> found = new LinkedHashMap<>();
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(field));
        List<Map<String, Object>> batches = new ArrayList<>();
        String said = said(() -> {
            for (MutableRecordBatch batch : records.batches()) {
                batches.add(facts(batch));
            }
            return null;
        });
        if (said.equals("OK")) {
            found.put("valid_bytes", records.validBytes());
        }
        found.put("kafka", said);
        found.put("batches", batches);
        return found;
    }

    private static Map<String, Object> facts(MutableRecordBatch batch) {
        Map<String, Object> facts = new LinkedHashMap<>();
        String header = said(() -> {
            header(batch, facts);
            return null;
        });
        if (!header.equals("OK")) {
            facts.clear();
            facts.put("header_error", header);
        }
        facts.put("ensure_valid", said(() -> {
            batch.ensureValid();
            return null;
        }));
        List<Map<String, Object>> records = new ArrayList<>();
        String read = said(() -> {
            for (Record record : batch) {
                records.add(record(record, batch));
            }
            return null;
        });
        facts.put("records", records);
        facts.put("iterate", read);
        return facts;
    }

    private static void header(MutableRecordBatch batch, Map<String, Object> facts) {
        facts.put("magic", (int) batch.magic());
        facts.put("codec", batch.compressionType().name);
        facts.put("size", batch.sizeInBytes());
        String base = said(() -> facts.put("base_offset", batch.baseOffset()));
        if (!base.equals("OK")) {
            facts.put("base_offset_error", base);
        }
        facts.put("last_offset", batch.lastOffset());
        facts.put("timestamp_type", batch.timestampType().name);
        facts.put("max_timestamp", batch.maxTimestamp());
        facts.put("checksum", batch.checksum());
        facts.put("valid", batch.isValid());
        ByteBuffer wire = ByteBuffer.allocate(batch.sizeInBytes());
        batch.writeTo(wire);
        facts.put("attributes", batch.magic() < 2 ? wire.get(LEGACY_ATTRIBUTES) : wire.getShort(ATTRIBUTES));
        if (batch.magic() < 2) {
            return;
        }
        facts.put("partition_leader_epoch", batch.partitionLeaderEpoch());
        facts.put("producer_id", batch.producerId());
        facts.put("producer_epoch", (int) batch.producerEpoch());
        facts.put("base_sequence", batch.baseSequence());
        facts.put("last_sequence", batch.lastSequence());
        facts.put("transactional", batch.isTransactional());
        facts.put("control", batch.isControlBatch());
        facts.put("delete_horizon_ms", batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : null);
        facts.put("count", batch.countOrNull());
    }

    private static Map<String, Object> record(Record record, MutableRecordBatch batch) {
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("offset", record.offset());
        facts.put("timestamp", record.timestamp());
        facts.put("key_b64", base64(Utils.toNullableArray(record.key())));
        facts.put("value_b64", base64(Utils.toNullableArray(record.value())));
        List<List<String>> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            List<String> pair = new ArrayList<>();
            pair.add(header.key());
            pair.add(base64(header.value()));
            headers.add(pair);
        }
        facts.put("headers", headers);
        if (batch.isControlBatch()) {
            ControlRecordType type = ControlRecordType.parse(record.key());
            facts.put("control_type", type.name());
            if (type == ControlRecordType.ABORT || type == ControlRecordType.COMMIT) {
                facts.put("coordinator_epoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
            }
        }
        return facts;
    }

    private static String base64(byte[] data) {
        return data == null ? null : Base64.getEncoder().encodeToString(data);
    }

    private static String said(Callable<?> work) {
        try {
            work.call();
            return "OK";
        } catch (Exception | OutOfMemoryError error) {
            String name = error.getClass().getName();
            name = name.startsWith(ERRORS) ? name.substring(ERRORS.length()) : name.replace("java.lang.", "");
            return name + ": " + error.getMessage();
        }
    }
}
