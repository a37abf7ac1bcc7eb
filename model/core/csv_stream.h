/* csv_stream.h - reads a table of any length in chunks of records, in constant memory. Errors are
 * those of csv.h, and a record longer than DL_CSV_RECORD_BYTES. */
#ifndef DL_MODEL_CORE_CSV_STREAM_H
#define DL_MODEL_CORE_CSV_STREAM_H

#include "model/core/csv.h"
#include "model/core/file.h"

struct dl_csv_stream {
    struct dl_csv header; /* the table without its rows */
    struct dl_file_reader file;
    struct dl_arena arena; /* holds the header and the buffer */
    struct dl_arena chunk; /* holds the records last read */
    char *buffer;
    size_t begin, end; /* unparsed part of the buffer */
    int64_t offset;    /* file offset of `begin` */
    int line;          /* line of `begin` */
    bool ended;        /* the file is read to its end */
};

/* Opens a table and reads its header. *regular_out: false for a file that is not regular, which is
 * not opened. After DL_OK with a regular file, dl_csv_close must follow. */
enum dl_code dl_csv_open(const char *path, struct dl_csv_stream *out, bool *regular_out,
                         struct dl_err *err);
/* The next records with their lines and byte offsets; no rows at the end. Valid until the next
 * call. */
enum dl_code dl_csv_next(struct dl_csv_stream *stream, struct dl_csv *out, struct dl_err *err);
void dl_csv_close(struct dl_csv_stream *stream);

#endif
