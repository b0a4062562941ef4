/* JSON text: strings, bytes and floats. */

#include "json_text.h"

#include <math.h>

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char for_url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char hex[] = "0123456789abcdef";

/* The bits of the usual NaN; those of others are in the text. */
#define USUAL_NAN UINT64_C(0x7ff8000000000000)

bool grow_text(JsonText *text, size_t added)
{
    if (added > PY_SSIZE_T_MAX / 4 || text->size > PY_SSIZE_T_MAX / 4)
        return false;
    const size_t room = 2 * (text->size + added + 1);
    char *data = PyMem_Realloc(text->data == text->few ? NULL : text->data, room);
    if (data == NULL)
        return false;
    if (text->data == text->few)
        memcpy(data, text->few, text->size);
    text->data = data;
    text->room = room;
    return true;
}

/* --- strings --- */

static void put_unit(JsonText *text, uint32_t unit)
{
    const char escape[6] = {'\\', 'u', hex[unit >> 12 & 15], hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15]};
    put_plain(text, escape, sizeof escape);
}

/* A character, escaped where it has to be: of at most 12 bytes. */
static void put_character(JsonText *text, uint32_t character)
{
    static const char short_ones[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    if (character == '"' || character == '\\') {
        put_char(text, '\\');
        put_char(text, (char)character);
    } else if (character >= ' ' && character <= '~')
        put_char(text, (char)character);
    else if (character < sizeof short_ones && short_ones[character]) {
        put_char(text, '\\');
        put_char(text, short_ones[character]);
    } else if (character > 0xFFFF) {
        put_unit(text, 0xD7C0 + (character >> 10));
        put_unit(text, 0xDC00 | (character & 0x3FF));
    } else
        put_unit(text, character);
}

/* Text that isn't ASCII, as Python decodes it. */
static NOINLINE bool put_unicode(JsonText *text, const uint8_t *at, size_t size)
{
    PyObject *decoded = PyUnicode_DecodeUTF8((const char *)at, (Py_ssize_t)size, NULL);
    if (decoded == NULL) {
        PyErr_Clear();
        return false;
    }
    const Py_ssize_t length = PyUnicode_GET_LENGTH(decoded);
    bool fits = make_room(text, 12 * (size_t)length + 2);
    for (Py_ssize_t i = 0; fits && i < length; i++)
        put_character(text, PyUnicode_READ_CHAR(decoded, i));
    Py_DECREF(decoded);
    return fits;
}

bool put_string(JsonText *text, const uint8_t *at, size_t size)
{
    if (!make_room(text, 6 * size + 2))
        return false;
    const uint8_t *const stop = at + size, *from = at;
    put_char(text, '"');
    const size_t start = text->size;
    char *to = text->data + start;
    while (from < stop && *from >= ' ' && *from <= '~' && *from != '"' && *from != '\\')
        *to++ = (char)*from++;
    text->size = (size_t)(to - text->data);
    for (; from < stop && *from < 128; from++)
        put_character(text, *from);
    if (from < stop) {
        text->size = start;
        if (!put_unicode(text, at, size))
            return false;
    }
    put_char(text, '"');
    return true;
}

/* --- bytes --- */

static void put_groups(JsonText *text, const char *letters, const uint8_t *at, size_t groups)
{
    char *to = text->data + text->size;
    for (; groups; groups--, at += 3, to += 4) {
        to[0] = letters[at[0] >> 2];
        to[1] = letters[(at[0] & 3) << 4 | at[1] >> 4];
        to[2] = letters[(at[1] & 15) << 2 | at[2] >> 6];
        to[3] = letters[at[2] & 63];
    }
    text->size = (size_t)(to - text->data);
}

bool put_base64(JsonText *text, const uint8_t *at, size_t size)
{
    if (!make_room(text, size / 3 * 4 + 4 + 2))
        return false;
    put_char(text, '"');
    put_groups(text, standard, at, size / 3);
    if (size % 3) {
        const uint8_t *const tail = at + size / 3 * 3;
        const uint8_t last[3] = {tail[0], size % 3 == 2 ? tail[1] : 0, 0};
        put_groups(text, standard, last, 1);
        text->data[text->size - 1] = '=';
        if (size % 3 == 1)
            text->data[text->size - 2] = '=';
    }
    put_char(text, '"');
    return true;
}

bool put_uuid(JsonText *text, const uint8_t *at)
{
    const uint8_t last[3] = {at[15], 0, 0};
    if (!make_room(text, 26))
        return false;
    put_char(text, '"');
    put_groups(text, for_url, at, 5);
    put_groups(text, for_url, last, 1);
    text->size -= 2;
    put_char(text, '"');
    return true;
}

/* --- numbers --- */

bool put_float(JsonText *text, uint64_t bits)
{
    const double number = as_double(bits);
    if (!make_room(text, 64))
        return false;
    if (isfinite(number)) {
        char *digits = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
        if (digits == NULL) {
            PyErr_Clear();
            return false;
        }
        put_plain(text, digits, strlen(digits)); /* at most 24 */
        PyMem_Free(digits);
    } else if (isinf(number))
        put_plain(text, number > 0 ? "\"Infinity\"" : "\"-Infinity\"", number > 0 ? 10 : 11);
    else if (bits == USUAL_NAN)
        put_plain(text, "\"NaN\"", 5);
    else {
        put_plain(text, "\"NaN:", 5);
        for (int shift = 60; shift >= 0; shift -= 4)
            put_char(text, hex[bits >> shift & 15]);
        put_char(text, '"');
    }
    return true;
}
