/* csv_stream.h - a table of any length, some records at a time: memory does not grow with the file.
 * What csv.h refuses is refused here, and a record longer than DL_CSV_RECORD_BYTES. */
#ifndef DL_MODEL_CORE_CSV_STREAM_H
#define DL_MODEL_CORE_CSV_STREAM_H

#include "model/core/csv.h"
#include "model/core/file.h"

struct dl_csv_stream {
    struct dl_csv header; /* the table without its rows */
    struct dl_file_reader file;
    struct dl_arena arena; /* of the header and the buffer */
    struct dl_arena chunk; /* of the records last read */
    char *buffer;
    size_t begin, end; /* of what was read and not yet given out */
    int64_t offset;    /* of the file, at `begin` */
    int line;          /* there */
    bool ended;        /* all of the file is in the buffer */
};

/* Opens a table and reads its header. *regular_out: false for what is no regular file, which is not
 * opened. After DL_OK with a regular file, dl_csv_close must follow. */
enum dl_code dl_csv_open(const char *path, struct dl_csv_stream *out, bool *regular_out,
                         struct dl_err *err);
/* The next records, with the lines and bytes of the file where they start; no rows at the end. They
 * live until the next call. */
enum dl_code dl_csv_next(struct dl_csv_stream *stream, struct dl_csv *out, struct dl_err *err);
void dl_csv_close(struct dl_csv_stream *stream);

#endif
