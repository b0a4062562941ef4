/* JSON text as Python's json module writes it: ASCII, compact. A buffer that grows, and what it can hold.

   Rules: every function leaves room for one more byte after what it writes; it returns false where memory is
   short, or where the bytes are none of its kind. Nothing here sets an exception that stays. */

#ifndef COORDWIRE_MESSAGES_JSON_TEXT_H
#define COORDWIRE_MESSAGES_JSON_TEXT_H

#include "wire.h"

enum { FEW_BYTES = 2048, NUMBER_ROOM = 24 };

typedef struct JsonText {
    char *data;
    size_t size, room; /* room: of `data` */
    char few[FEW_BYTES];
} JsonText;

static inline void begin_text(JsonText *text)
{
    text->data = text->few;
    text->size = 0;
    text->room = FEW_BYTES;
}

static inline void end_text(JsonText *text)
{
    if (text->data != text->few)
        PyMem_Free(text->data);
}

/* json_text.c: room for so many bytes more, and one. */
bool grow_text(JsonText *text, size_t added);

static inline bool make_room(JsonText *text, size_t added)
{
    return text->room - text->size > added || grow_text(text, added);
}

/* Where there is room already. */
static inline void put_char(JsonText *text, char byte) { text->data[text->size++] = byte; }

static inline void put_plain(JsonText *text, const char *bytes, size_t size)
{
    memcpy(text->data + text->size, bytes, size);
    text->size += size;
}

/* A number, of at most 20 characters. */
static inline void put_number(JsonText *text, int64_t number)
{
    char digits[NUMBER_ROOM], *at = digits + NUMBER_ROOM;
    uint64_t remaining = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do
        *--at = (char)('0' + remaining % 10);
    while (remaining /= 10);
    if (number < 0)
        *--at = '-';
    put_plain(text, at, (size_t)(digits + NUMBER_ROOM - at));
}

/* json_text.c: UTF-8 as a string; false for what isn't UTF-8. */
bool put_string(JsonText *text, const uint8_t *at, size_t size);
/* Bytes as a string of standard base64, with padding. */
bool put_base64(JsonText *text, const uint8_t *at, size_t size);
/* 16 bytes as a string of 22 characters of base64url. */
bool put_uuid(JsonText *text, const uint8_t *at);
/* A float64 as Kafka's form has it. */
bool put_float(JsonText *text, uint64_t bits);

#endif
