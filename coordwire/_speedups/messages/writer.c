/* The buffer that a message is written into: on the stack while it is small. */

#include "encode.h"

uint8_t *writer_grow(Writer *writer, size_t size)
{
    if (size > (size_t)PY_SSIZE_T_MAX / 4 - writer->size)
        return NULL;
    size_t room = (writer->size + size) * 2;
    uint8_t *bytes = PyMem_Realloc(writer->bytes == writer->few ? NULL : writer->bytes, room);
    if (bytes == NULL)
        return NULL;
    if (writer->bytes == writer->few)
        memcpy(bytes, writer->few, writer->size);
    writer->bytes = bytes;
    writer->room = room;
    return bytes + writer->size;
}
