/* The headers of a packet down to TCP: link layers, IPv4 without options, IPv6 without extension headers. */

#include "packets.h"

enum { ETHERNET = 1, COOKED = 113, COOKED2 = 276 };
enum { IPV4 = 0x0800, IPV6 = 0x86DD, TCP = 6 };

/* Where the IP header begins; -1 where Python has to look. */
static Py_ssize_t network(const Record *record)
{
    const uint8_t *data = record->data;
    Py_ssize_t at;
    uint32_t kind;
    switch (record->link) {
    case ETHERNET: at = 14; break;
    case COOKED: at = 16; break;
    case COOKED2:
        if (record->size < 20)
            return -1;
        kind = big16(data);
        return kind == IPV4 || kind == IPV6 ? 20 : -1;
    case 12:
    case 14:
    case 101:
    case 228:
    case 229: return 0;
    default: return -1;
    }
    if (record->size < at)
        return -1;
    kind = big16(data + at - 2);
    while (kind == 0x8100 || kind == 0x88A8 || kind == 0x9100 || kind == 0x9200) {
        if (record->size < at + 4)
            return -1;
        kind = big16(data + at + 2);
        at += 4;
    }
    return kind == IPV4 || kind == IPV6 ? at : -1;
}

bool read_segment(const Record *record, Segment *segment)
{
    Py_ssize_t at = network(record), size = record->size, end, start;
    if (at < 0 || size < at + 40)
        return false;
    const uint8_t *data = record->data, *ip = data + at;
    if (ip[0] == 0x45) {
        Py_ssize_t total = big16(ip + 2);
        if (ip[9] != TCP || big16(ip + 6) & 0x3FFF)
            return false;
        segment->addresses = ip + 12;
        segment->addresses_size = 8;
        start = at + 20;
        end = total ? at + total : record->wire;
    } else if (ip[0] >> 4 == 6) {
        Py_ssize_t total = big16(ip + 4);
        if (ip[6] != TCP || size < at + 60)
            return false;
        segment->addresses = ip + 8;
        segment->addresses_size = 32;
        start = at + 40;
        end = total ? at + 40 + total : record->wire;
    } else {
        return false;
    }
    const uint8_t *tcp = data + start;
    unsigned header = (unsigned)(tcp[12] >> 4) * 4;
    start += header;
    if (header < 20 || start > end || end > size) /* or the snap length cut it */
        return false;
    segment->ports = tcp;
    segment->sequence = big32(tcp + 4);
    segment->acknowledged = big32(tcp + 8);
    segment->flags = tcp[13] & 0x3Fu;
    segment->payload = data + start;
    segment->length = end - start;
    return true;
}
