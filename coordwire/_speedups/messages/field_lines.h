/* A message's bytes to lines for reading, one field a line, as coordwire.cli.message_lines lays them out. */

#ifndef COORDWIRE_MESSAGES_FIELD_LINES_H
#define COORDWIRE_MESSAGES_FIELD_LINES_H

#include "transcribe.h"

/* Write the lines of a message that fills the bytes from `at` to `end`, each with its end. False, without an
   exception, where they are left to Python; the text may have a part of them then.

   rows: a tuple with a row for each op of the transcriber: the field's label as bytes; None or what has the texts
   of its numbers by `[]`; None or the rows of its struct. width: of a line, in characters. */
bool put_field_lines(JsonText *text, const Transcriber *transcriber, PyObject *rows, int width, const uint8_t *at,
                     const uint8_t *end);

#endif
