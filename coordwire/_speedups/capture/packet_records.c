/* The records of a pcap and the packet blocks of a pcapng. */

#include "packets.h"

#include <string.h>

#define SECOND 1000000000LL
#define GREATEST (16u << 20) /* of a block */
#define PACKET_BLOCK 6u

static uint32_t number32(const uint8_t *at, bool big)
{
    return big ? big32(at) : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static bool read_record(const Layout *layout, const uint8_t *data, Py_ssize_t at, Py_ssize_t end, Record *record)
{
    if (end - at < layout->header)
        return false;
    int64_t seconds = number32(data + at, layout->big), fraction = number32(data + at + 4, layout->big);
    uint32_t length = number32(data + at + 8, layout->big), wire = number32(data + at + 12, layout->big);
    if (length > layout->limit || fraction >= SECOND || (length | wire | seconds) == 0
        || end - at - layout->header < (Py_ssize_t)length)
        return false;
    record->data = data + at + layout->header;
    record->size = length;
    record->wire = wire > length ? wire : length;
    record->next = at + layout->header + (Py_ssize_t)length;
    record->time_ns = seconds * SECOND + fraction * layout->unit;
    record->mark = seconds;
    record->link = layout->link;
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

static bool read_block(const Layout *layout, const uint8_t *data, Py_ssize_t at, Py_ssize_t end, Record *record)
{
    if (end - at < 32 || number32(data + at, layout->big) != PACKET_BLOCK)
        return false;
    uint32_t length = number32(data + at + 4, layout->big);
    if (length < 32 || length % 4 || length > GREATEST || end - at < (Py_ssize_t)length
        || memcmp(data + at + 4, data + at + length - 4, 4) != 0)
        return false;
    uint32_t index = number32(data + at + 8, layout->big);
    uint64_t ticks = (uint64_t)number32(data + at + 12, layout->big) << 32 | number32(data + at + 16, layout->big);
    uint32_t captured = number32(data + at + 20, layout->big), wire = number32(data + at + 24, layout->big);
    if ((Py_ssize_t)index >= PyList_GET_SIZE(layout->interfaces) || captured > length - 32)
        return false;
    PyObject *interface = PyList_GET_ITEM(layout->interfaces, index);
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

bool read_packet(const Layout *layout, const uint8_t *data, Py_ssize_t at, Py_ssize_t end, Record *record)
{
    return layout->interfaces == NULL ? read_record(layout, data, at, end, record)
                                      : read_block(layout, data, at, end, record);
}
