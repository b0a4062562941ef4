/* `PacketWalk`: ordinary packets of a capture to the chunks of their streams.

   Strategy: a walk goes from packet to packet for as long as they are ordinary: a sound record or block, whole,
   IPv4 without options or IPv6 without extension headers, TCP, not cut, and in its stream's order while neither
   direction of its connection waits for anything. It updates what the reassembly in Python knows of the stream
   (`HalfStream`, by the offsets of its slots) and stops before the first packet that is anything else, which
   Python reads. Rules: all checks of a packet come before its first change; nothing is read outside the bytes
   given; what a slot holds is checked each time it is read; what is wrong with a packet is worded by Python. */

#include "../module.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>

#define SECOND 1000000000LL
#define GREATEST (16u << 20) /* of a block */
#define PACKET_BLOCK 6u

enum { ETHERNET = 1, COOKED = 113, COOKED2 = 276 };
enum { IPV4 = 0x0800, IPV6 = 0x86DD, TCP = 6, ACK = 16, DECIDING = 0x17 };

enum { NEXT, EDGE, OFFSET, WAITING, PEER, ACKNOWLEDGED, ACKNOWLEDGED_NS, LAST_NS, FLOW, SLOTS };
static const char *const slot_names[SLOTS] = {"next",         "edge",            "offset",  "waiting", "peer",
                                              "acknowledged", "acknowledged_ns", "last_ns", "flow"};

typedef struct {
    PyObject_HEAD
    PyObject *halves;     /* dict: key of a direction to its HalfStream */
    PyObject *interfaces; /* of a pcapng's section: (link, snap, times, parts, start, digits); NULL for a pcap */
    PyTypeObject *half;
    PyTypeObject *chunk; /* a tuple of five with names */
    Py_ssize_t slots[SLOTS];
    bool big;
    int64_t unit; /* nanoseconds of a unit of the fraction */
    Py_ssize_t header;
    uint32_t limit;
    int link;
} PacketWalk;

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

static uint32_t big16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

static uint32_t big32(const uint8_t *at) { return big16(at) << 16 | big16(at + 2); }

static uint32_t number32(const uint8_t *at, bool big)
{
    return big ? big32(at) : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static bool read_record(const PacketWalk *walk, const uint8_t *data, Py_ssize_t at, Py_ssize_t end, Record *record)
{
    if (end - at < walk->header)
        return false;
    int64_t seconds = number32(data + at, walk->big), fraction = number32(data + at + 4, walk->big);
    uint32_t length = number32(data + at + 8, walk->big), wire = number32(data + at + 12, walk->big);
    if (length > walk->limit || fraction >= SECOND || (length | wire | seconds) == 0
        || end - at - walk->header < (Py_ssize_t)length)
        return false;
    record->data = data + at + walk->header;
    record->size = length;
    record->wire = wire > length ? wire : length;
    record->next = at + walk->header + (Py_ssize_t)length;
    record->time_ns = seconds * SECOND + fraction * walk->unit;
    record->mark = seconds;
    record->link = walk->link;
    return true;
}

/* A number of an interface; -1 for one that doesn't fit, which leaves the packet to Python. */
static int64_t of_interface(PyObject *interface, Py_ssize_t index)
{
    int64_t value = PyLong_AsLongLong(PyTuple_GET_ITEM(interface, index));
    if (value == -1)
        PyErr_Clear();
    return value;
}

static bool read_block(const PacketWalk *walk, const uint8_t *data, Py_ssize_t at, Py_ssize_t end, Record *record)
{
    if (end - at < 32 || number32(data + at, walk->big) != PACKET_BLOCK)
        return false;
    uint32_t length = number32(data + at + 4, walk->big);
    if (length < 32 || length % 4 || length > GREATEST || end - at < (Py_ssize_t)length
        || memcmp(data + at + 4, data + at + length - 4, 4) != 0)
        return false;
    uint32_t index = number32(data + at + 8, walk->big);
    uint64_t ticks = (uint64_t)number32(data + at + 12, walk->big) << 32 | number32(data + at + 16, walk->big);
    uint32_t captured = number32(data + at + 20, walk->big), wire = number32(data + at + 24, walk->big);
    if ((Py_ssize_t)index >= PyList_GET_SIZE(walk->interfaces) || captured > length - 32)
        return false;
    PyObject *interface = PyList_GET_ITEM(walk->interfaces, index);
    if (!PyTuple_Check(interface) || PyTuple_GET_SIZE(interface) < 5)
        return false;
    int64_t link = of_interface(interface, 0), times = of_interface(interface, 2);
    int64_t parts = of_interface(interface, 3), start = of_interface(interface, 4);
    if (link < 0 || link > INT32_MAX || times <= 0 || times > SECOND || parts != 1 || start < 0
        || ticks > (uint64_t)((INT64_MAX - start) / times))
        return false;
    record->data = data + at + 28;
    record->size = captured;
    record->wire = wire > captured ? wire : captured;
    record->next = at + (Py_ssize_t)length;
    record->time_ns = record->mark = (int64_t)ticks * times + start;
    record->link = (int)link;
    return true;
}

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

static bool read_segment(const Record *record, Segment *segment)
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

static PyObject **slot(const PacketWalk *walk, PyObject *half, int index)
{
    return (PyObject **)((char *)half + walk->slots[index]);
}

/* A slot's number; false where it holds none that fits. */
static bool slot_number(const PacketWalk *walk, PyObject *half, int index, int64_t *number)
{
    PyObject *value = *slot(walk, half, index);
    if (value == NULL || !PyLong_Check(value))
        return false;
    *number = PyLong_AsLongLong(value);
    if (*number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return true;
}

static void set_slot(const PacketWalk *walk, PyObject *half, int index, PyObject *value)
{
    PyObject **place = slot(walk, half, index), *old = *place;
    *place = Py_NewRef(value);
    Py_XDECREF(old);
}

static bool is_waiting(const PacketWalk *walk, PyObject *half)
{
    return *slot(walk, half, WAITING) != Py_False;
}

/* The direction that the segment belongs to, borrowed, if it comes there in order; else NULL. An error is set only
   where memory ran out. */
static PyObject *direction(const PacketWalk *walk, const Segment *segment)
{
    uint8_t key[36];
    memcpy(key, segment->addresses, (size_t)segment->addresses_size);
    memcpy(key + segment->addresses_size, segment->ports, 4);
    PyObject *name = PyBytes_FromStringAndSize((const char *)key, segment->addresses_size + 4);
    if (name == NULL)
        return NULL;
    PyObject *half = PyDict_GetItemWithError(walk->halves, name);
    Py_DECREF(name);
    int64_t next;
    if (half == NULL || !Py_IS_TYPE(half, walk->half) || !slot_number(walk, half, NEXT, &next)
        || next != segment->sequence || is_waiting(walk, half))
        return NULL;
    PyObject *peer = *slot(walk, half, PEER);
    return peer != NULL && Py_IS_TYPE(peer, walk->half) && !is_waiting(walk, peer) ? half : NULL;
}

/* The chunk of a segment with data, and the stream goes on after it. */
static PyObject *chunk_of(PacketWalk *walk, PyObject *half, const Segment *segment, PyObject *time, PyObject *number)
{
    int64_t offset;
    PyObject *flow = *slot(walk, half, FLOW), *position = *slot(walk, half, OFFSET);
    if (flow == NULL || !slot_number(walk, half, OFFSET, &offset) || offset < 0 || offset > INT64_MAX / 2)
        return NULL;
    PyObject *data = PyBytes_FromStringAndSize((const char *)segment->payload, segment->length);
    PyObject *after = PyLong_FromLongLong(offset + segment->length);
    PyObject *next = PyLong_FromUnsignedLong((uint32_t)(segment->sequence + (uint32_t)segment->length));
    PyObject *chunk = data && after && next ? walk->chunk->tp_alloc(walk->chunk, 5) : NULL;
    if (chunk != NULL) {
        PyTuple_SET_ITEM(chunk, 0, Py_NewRef(flow));
        PyTuple_SET_ITEM(chunk, 1, Py_NewRef(time));
        PyTuple_SET_ITEM(chunk, 2, Py_NewRef(position));
        PyTuple_SET_ITEM(chunk, 3, Py_NewRef(data));
        PyTuple_SET_ITEM(chunk, 4, Py_NewRef(number));
        set_slot(walk, half, OFFSET, after);
        set_slot(walk, half, NEXT, next);
        set_slot(walk, half, EDGE, next);
    }
    Py_XDECREF(data);
    Py_XDECREF(after);
    Py_XDECREF(next);
    return chunk;
}

/* 1: the segment is in `events`, or had no data; 0: Python has to look at it; -1: memory ran out. */
static int take(PacketWalk *walk, const Record *record, const Segment *segment, long long number, PyObject *events)
{
    if ((segment->flags & DECIDING) != ACK)
        return 0;
    PyObject *half = direction(walk, segment);
    int64_t known;
    if (half == NULL || !slot_number(walk, half, ACKNOWLEDGED, &known))
        return PyErr_Occurred() ? -1 : 0;
    int status = -1;
    PyObject *time = PyLong_FromLongLong(record->time_ns), *packet = NULL, *acknowledged = NULL, *chunk = NULL;
    if (time == NULL)
        goto done;
    if (known != segment->acknowledged && (known < 0 || segment->acknowledged - (uint32_t)known < 0x80000000u)) {
        acknowledged = PyLong_FromUnsignedLong(segment->acknowledged);
        if (acknowledged == NULL)
            goto done;
    }
    if (segment->length) {
        packet = PyLong_FromLongLong(number);
        chunk = packet == NULL ? NULL : chunk_of(walk, half, segment, time, packet);
        if (chunk == NULL) {
            status = PyErr_Occurred() ? -1 : 0;
            goto done;
        }
        if (PyList_Append(events, chunk) < 0)
            goto done;
    }
    if (acknowledged != NULL) {
        set_slot(walk, half, ACKNOWLEDGED, acknowledged);
        set_slot(walk, half, ACKNOWLEDGED_NS, time);
    }
    set_slot(walk, half, LAST_NS, time);
    status = 1;
done:
    Py_XDECREF(time);
    Py_XDECREF(packet);
    Py_XDECREF(acknowledged);
    Py_XDECREF(chunk);
    return status;
}

PyDoc_STRVAR(advance_doc, "advance(buffer, at, number) -> (at, packets, mark, chunks)\n\n"
                       "Take ordinary packets from this index on; number: of the packet before.");

static PyObject *packets_advance(PyObject *self, PyObject *arguments)
{
    PacketWalk *walk = (PacketWalk *)self;
    PyObject *buffer;
    Py_ssize_t at;
    long long number;
    if (!PyArg_ParseTuple(arguments, "SnL", &buffer, &at, &number))
        return NULL;
    const uint8_t *data = (const uint8_t *)PyBytes_AS_STRING(buffer);
    Py_ssize_t end = PyBytes_GET_SIZE(buffer);
    if (at < 0 || at > end) {
        PyErr_SetString(PyExc_ValueError, "the index is not in the buffer");
        return NULL;
    }
    PyObject *events = PyList_New(0);
    if (events == NULL)
        return NULL;
    Py_ssize_t packets = 0;
    int64_t mark = 0;
    for (Record record; walk->interfaces == NULL ? read_record(walk, data, at, end, &record)
                                                 : read_block(walk, data, at, end, &record);) {
        Segment segment;
        if (!read_segment(&record, &segment))
            break;
        int taken = take(walk, &record, &segment, number + packets + 1, events);
        if (taken < 0) {
            Py_DECREF(events);
            return NULL;
        }
        if (taken == 0)
            break;
        packets++;
        at = record.next;
        mark = record.mark;
    }
    return Py_BuildValue("nnLN", at, packets, (long long)mark, events);
}

/* --- its life --- */

/* The offset of a slot of a class made in Python. */
static Py_ssize_t find_slot(PyTypeObject *cls, const char *name)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)cls, name);
    if (found == NULL)
        return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(found, &PyMemberDescr_Type) && PyDescr_TYPE(found) == cls) {
        const PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
        if (member->type == T_OBJECT_EX && member->flags == 0)
            offset = member->offset;
    }
    Py_DECREF(found);
    if (offset < 0)
        PyErr_Format(PyExc_TypeError, "%.200s.%s is not a slot", cls->tp_name, name);
    return offset;
}

PyDoc_STRVAR(walk_type_doc,
             "PacketWalk(halves, half, chunk, big, unit, header, limit, link, interfaces)\n\n"
             "Walks over the packets of one pcap, or where interfaces is a list, of a pcapng's section.");

static PyObject *packets_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *halves, *interfaces;
    PyTypeObject *half, *chunk;
    int big, unit, header, link;
    unsigned limit;
    if (keywords != NULL && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "PacketWalk takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "O!O!O!piiIiO", &PyDict_Type, &halves, &PyType_Type, &half, &PyType_Type, &chunk,
                          &big, &unit, &header, &limit, &link, &interfaces))
        return NULL;
    if (!PyType_IsSubtype(chunk, &PyTuple_Type) || chunk->tp_basicsize != PyTuple_Type.tp_basicsize
        || chunk->tp_itemsize != PyTuple_Type.tp_itemsize || chunk->tp_alloc != PyType_GenericAlloc
        || (interfaces != Py_None && !PyList_Check(interfaces)) || header < 16 || unit < 1 || unit > 1000) {
        PyErr_SetString(PyExc_TypeError, "expected a tuple's class, a list or None, and a record's layout");
        return NULL;
    }
    PacketWalk *walk = (PacketWalk *)type->tp_alloc(type, 0);
    if (walk == NULL)
        return NULL;
    walk->halves = Py_NewRef(halves);
    walk->interfaces = interfaces == Py_None ? NULL : Py_NewRef(interfaces);
    walk->half = (PyTypeObject *)Py_NewRef(half);
    walk->chunk = (PyTypeObject *)Py_NewRef(chunk);
    walk->big = big != 0;
    walk->unit = unit;
    walk->header = header;
    walk->limit = limit;
    walk->link = link;
    for (int index = 0; index < SLOTS; index++) {
        walk->slots[index] = find_slot(half, slot_names[index]);
        if (walk->slots[index] < 0) {
            Py_DECREF(walk);
            return NULL;
        }
    }
    return (PyObject *)walk;
}

static int packets_traverse(PyObject *self, visitproc visit, void *arg)
{
    PacketWalk *walk = (PacketWalk *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(walk->halves);
    Py_VISIT(walk->interfaces);
    Py_VISIT(walk->half);
    Py_VISIT(walk->chunk);
    return 0;
}

static void packets_dealloc(PyObject *self)
{
    PacketWalk *walk = (PacketWalk *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(walk->halves);
    Py_CLEAR(walk->interfaces);
    Py_CLEAR(walk->half);
    Py_CLEAR(walk->chunk);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef packets_methods[] = {
    {"advance", packets_advance, METH_VARARGS, advance_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot packets_slots[] = {
    {Py_tp_doc, (void *)walk_type_doc},     {Py_tp_new, packets_new},         {Py_tp_traverse, packets_traverse},
    {Py_tp_dealloc, packets_dealloc},       {Py_tp_methods, packets_methods}, {0, NULL},
};

static PyType_Spec packets_spec = {
    .name = "coordwire._speedups._native.PacketWalk",
    .basicsize = sizeof(PacketWalk),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = packets_slots,
};

int packets_exec(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &packets_spec, NULL);
    if (type == NULL)
        return -1;
    int status = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return status;
}
