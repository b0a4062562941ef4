import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;

/**
 * What Kafka's own builder makes of records, and what Kafka reads in batches that others made.
 *
 * <p>Rules (numbers are big-endian): standard input is int32 count, then the cases; a case is
 * int8 magic, int8 codec, int8 append time?, int64 base offset, int64 append time, int64 producer id, int16 producer
 * epoch, int32 base sequence, int8 transactional?, int8 control?, int32 leader epoch, int64 delete horizon, int64 last
 * offset (-1: the last record's), the records, and a batch to read (bytes). Records are int32 count, then int64
 * offset, int64 timestamp, key, value, int32 count of headers, each key and value; bytes stand behind their int32
 * length, -1 for null. Each case is answered by the batch that Kafka builds (bytes) and the records that it reads.
 */
public final class Records {
    private static final int ROOM = 1 << 16;

    private final DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
    private final DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, ROOM));

    public static void main(String[] args) throws IOException {
        Records asked = new Records();
        int count = asked.in.readInt();
        for (int each = 0; each < count; each++) {
            asked.answer();
        }
        asked.out.flush();
    }

    private void answer() throws IOException {
        byte magic = in.readByte();
        Compression codec = Compression.of(CompressionType.forId(in.readByte()).name).build();
        TimestampType kind = in.readBoolean() ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        if (magic == 0) {
            kind = TimestampType.NO_TIMESTAMP_TYPE;
        }
        long base = in.readLong();
        long time = in.readLong();
        long producer = in.readLong();
        short epoch = in.readShort();
        int sequence = in.readInt();
        boolean transactional = in.readBoolean();
        boolean control = in.readBoolean();
        int leader = in.readInt();
        long horizon = in.readLong();
        long last = in.readLong();
        List<Long> offsets = new ArrayList<>();
        List<SimpleRecord> records = records(offsets);
        byte[] theirs = bytes();
        if (records.isEmpty()) {
            ByteBuffer header = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
            DefaultRecordBatch.writeEmptyHeader(header, magic, producer, epoch, sequence, base, Math.max(last, base),
                leader, kind, time, transactional, control);
            put(header.array());
        } else {
            var stream = new ByteBufferOutputStream(ROOM);
            var builder = new MemoryRecordsBuilder(stream, magic, codec, kind, base, time, producer, epoch, sequence,
                transactional, control, leader, Integer.MAX_VALUE, horizon);
            for (int number = 0; number < records.size(); number++) {
                if (control) {
                    builder.appendControlRecordWithOffset(offsets.get(number), records.get(number));
                } else {
                    builder.appendWithOffset(offsets.get(number), records.get(number));
                }
            }
            if (last >= 0) {
                builder.overrideLastOffset(last);
            }
            put(Utils.toArray(builder.build().buffer()));
        }
        read(theirs);
    }

    private void read(byte[] batches) throws IOException {
        int count = 0;
        ByteArrayOutputStream found = new ByteArrayOutputStream();
        DataOutputStream to = new DataOutputStream(found);
        for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(batches)).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                record.ensureValid();
                count++;
                to.writeLong(record.offset());
                to.writeLong(record.timestamp());
                put(to, Utils.toNullableArray(record.key()));
                put(to, Utils.toNullableArray(record.value()));
                to.writeInt(record.headers().length);
                for (Header header : record.headers()) {
                    put(to, header.key().getBytes(java.nio.charset.StandardCharsets.UTF_8));
                    put(to, header.value());
                }
            }
        }
        out.writeInt(count);
        found.writeTo(out);
    }

    private List<SimpleRecord> records(List<Long> offsets) throws IOException {
        List<SimpleRecord> found = new ArrayList<>();
        int count = in.readInt();
        for (int each = 0; each < count; each++) {
            offsets.add(in.readLong());
            long time = in.readLong();
            byte[] key = bytes();
            byte[] value = bytes();
            Header[] headers = new Header[in.readInt()];
            for (int number = 0; number < headers.length; number++) {
                headers[number] = new RecordHeader(Utils.utf8(bytes()), bytes());
            }
            found.add(new SimpleRecord(time, key, value, headers));
        }
        return found;
    }

    private byte[] bytes() throws IOException {
        int size = in.readInt();
        return size < 0 ? null : in.readNBytes(size);
    }

    private void put(byte[] data) throws IOException {
        put(out, data);
    }

    private static void put(DataOutputStream to, byte[] data) throws IOException {
        to.writeInt(data == null ? -1 : data.length);
        if (data != null) {
            to.write(data);
        }
    }
}
