/* `PacketWalk`: ordinary packets of a capture to the chunks of their streams.

   Strategy: a walk goes from packet to packet for as long as they are ordinary: a sound record or block, whole,
   IPv4 without options or IPv6 without extension headers, TCP, not cut, and in its stream's order while neither
   direction of its connection waits for anything. It updates what the reassembly in Python knows of the stream
   (`HalfStream`, by the offsets of its slots) and stops before the first packet that is anything else, which
   Python reads. Rules: all checks of a packet come before its first change; nothing is read outside the bytes
   given; what a slot holds is checked each time it is read; what is wrong with a packet is worded by Python. */

#include "packets.h"
#include "../slots.h"

#include <string.h>

enum { ACK = 16, DECIDING = 0x17 };

enum { NEXT, EDGE, OFFSET, WAITING, PEER, ACKNOWLEDGED, ACKNOWLEDGED_NS, LAST_NS, FLOW, SLOTS };
static const char *const slot_names[SLOTS] = {"next",         "edge",            "offset",  "waiting", "peer",
                                              "acknowledged", "acknowledged_ns", "last_ns", "flow"};

typedef struct {
    PyObject_HEAD
    PyObject *halves; /* dict: key of a direction to its HalfStream */
    PyObject *interfaces; /* the layout's */
    PyTypeObject *half;
    PyTypeObject *chunk; /* a tuple of five with names */
    Py_ssize_t slots[SLOTS];
    Layout layout;
} PacketWalk;

static bool is_waiting(const PacketWalk *walk, PyObject *half)
{
    return slot_value(half, walk->slots[WAITING]) != Py_False;
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
    if (half == NULL || !Py_IS_TYPE(half, walk->half) || !slot_number(half, walk->slots[NEXT], &next)
        || next != segment->sequence || is_waiting(walk, half))
        return NULL;
    PyObject *peer = slot_value(half, walk->slots[PEER]);
    return peer != NULL && Py_IS_TYPE(peer, walk->half) && !is_waiting(walk, peer) ? half : NULL;
}

/* The chunk of a segment with data, and the stream goes on after it. */
static PyObject *chunk_of(PacketWalk *walk, PyObject *half, const Segment *segment, PyObject *time, PyObject *number)
{
    int64_t offset;
    PyObject *flow = slot_value(half, walk->slots[FLOW]), *position = slot_value(half, walk->slots[OFFSET]);
    if (flow == NULL || !slot_number(half, walk->slots[OFFSET], &offset) || offset < 0 || offset > INT64_MAX / 2)
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
        set_slot(half, walk->slots[OFFSET], after);
        set_slot(half, walk->slots[NEXT], next);
        set_slot(half, walk->slots[EDGE], next);
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
    if (half == NULL || !slot_number(half, walk->slots[ACKNOWLEDGED], &known))
        return PyErr_Occurred() ? -1 : 0;
    int status = -1;
    PyObject *time = PyLong_FromLongLong(record->time_ns), *packet = NULL, *acknowledged = NULL, *chunk = NULL;
    if (time == NULL)
        goto cleanup;
    if (known != segment->acknowledged && (known < 0 || segment->acknowledged - (uint32_t)known < 0x80000000u)) {
        acknowledged = PyLong_FromUnsignedLong(segment->acknowledged);
        if (acknowledged == NULL)
            goto cleanup;
    }
    if (segment->length) {
        packet = PyLong_FromLongLong(number);
        chunk = packet == NULL ? NULL : chunk_of(walk, half, segment, time, packet);
        if (chunk == NULL) {
            status = PyErr_Occurred() ? -1 : 0;
            goto cleanup;
        }
        if (PyList_Append(events, chunk) < 0)
            goto cleanup;
    }
    if (acknowledged != NULL) {
        set_slot(half, walk->slots[ACKNOWLEDGED], acknowledged);
        set_slot(half, walk->slots[ACKNOWLEDGED_NS], time);
    }
    set_slot(half, walk->slots[LAST_NS], time);
    status = 1;
cleanup:
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
    for (Record record; read_packet(&walk->layout, data, at, end, &record);) {
        Segment segment;
        if (!read_segment(&record, &segment))
            break;
        int outcome = take(walk, &record, &segment, number + packets + 1, events);
        if (outcome < 0) {
            Py_DECREF(events);
            return NULL;
        }
        if (outcome == 0)
            break;
        packets++;
        at = record.next;
        mark = record.mark;
    }
    return Py_BuildValue("nnLN", at, packets, (long long)mark, events);
}

/* --- its life --- */

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
    walk->layout.interfaces = walk->interfaces = interfaces == Py_None ? NULL : Py_NewRef(interfaces);
    walk->half = (PyTypeObject *)Py_NewRef(half);
    walk->chunk = (PyTypeObject *)Py_NewRef(chunk);
    walk->layout.big = big != 0;
    walk->layout.unit = unit;
    walk->layout.header = header;
    walk->layout.limit = limit;
    walk->layout.link = link;
    if (find_slots(half, slot_names, SLOTS, walk->slots) < 0)
        Py_CLEAR(walk);
    return (PyObject *)walk;
}

OWNS(PacketWalk, halves, chunk)

static PyMethodDef packets_methods[] = {
    {"advance", packets_advance, METH_VARARGS, advance_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot packets_slots[] = {
    {Py_tp_doc, (void *)walk_type_doc},     {Py_tp_new, packets_new},         {Py_tp_traverse, PacketWalk_traverse},
    {Py_tp_dealloc, PacketWalk_dealloc},       {Py_tp_methods, packets_methods}, {0, NULL},
};

PyType_Spec packet_walk_spec = {
    .name = "coordwire._speedups._native.PacketWalk",
    .basicsize = sizeof(PacketWalk),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = packets_slots,
};
