/* A record's headers as they are written; see header_writer.c. */

#ifndef COORDWIRE_RECORDS_HEADER_WRITER_H
#define COORDWIRE_RECORDS_HEADER_WRITER_H

#include "record_codec.h"
#include "put.h"

/* What writing a record or a part of one says. */
enum { WRITTEN, FULL, DOUBT, FAILED };

/* The count of headers, and they, into `tail`. */
int write_headers(struct bytes *tail, PyObject *headers);

/* Whether headers that were written are the same as long as they are there. */
int never_changes(PyObject *headers);

#endif
