/* A packet as captured, and TCP in it: what the walk over packets reads before it changes anything.

   Rule: nothing is read outside the bytes given; what is out of the ordinary is left to Python, which words it. */

#ifndef COORDWIRE_PACKETS_H
#define COORDWIRE_PACKETS_H

#include "../module.h"

#include <stdbool.h>
#include <stdint.h>

/* How a capture has its packets. interfaces: of a pcapng's section, (link, snap, times, parts, start, digits) each;
   NULL for a pcap. unit: nanoseconds of a unit of the fraction; header: bytes of a record's; limit: of a packet. */
typedef struct {
    PyObject *interfaces;
    int64_t unit;
    Py_ssize_t header;
    uint32_t limit;
    int link;
    bool big;
} Layout;

/* A packet as captured. next: where the record after it begins; mark: what the reader goes on from. */
typedef struct {
    const uint8_t *data;
    Py_ssize_t size, wire, next;
    int64_t time_ns, mark;
    int link;
} Record;

/* TCP in a packet. */
typedef struct {
    const uint8_t *addresses, *ports, *payload;
    Py_ssize_t addresses_size, length;
    uint32_t sequence, acknowledged;
    unsigned flags;
} Segment;

static inline uint32_t big16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

static inline uint32_t big32(const uint8_t *at) { return big16(at) << 16 | big16(at + 2); }

/* The record or block at an index; false for one that is left to Python. */
bool read_packet(const Layout *layout, const uint8_t *data, Py_ssize_t at, Py_ssize_t end, Record *record);

/* The TCP segment in a packet; false for anything else, and for one that was cut. */
bool read_segment(const Record *record, Segment *segment);

#endif
