/* file.h - reads whole files and replaces files atomically.
 * The model's only I/O apart from JSON; all rooms use it.
 */
#ifndef DL_MODEL_CORE_FILE_H
#define DL_MODEL_CORE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/core/arena.h"
#include "model/core/status.h"

/* Reads a whole regular file or pipe into the arena, NUL-terminated. DL_ERR_INPUT with the name for
 * a directory, a missing or unreadable file, or more than max_bytes. */
enum dl_code dl_file_read(const char *path, size_t max_bytes, struct dl_arena *arena,
                          char **text_out, size_t *length_out, struct dl_err *err);

/* The same, but refuses all but regular files, and never blocks on a FIFO. */
enum dl_code dl_file_read_regular(const char *path, size_t max_bytes, struct dl_arena *arena,
                                  char **text_out, size_t *length_out, struct dl_err *err);

/* Reads up to `size` bytes from `offset`; returns their number, 0 on an error. */
size_t dl_file_part(const char *path, int64_t offset, char *buffer, size_t size);

/* A file read sequentially in pieces. */
struct dl_file_reader {
    const char *path;
    int fd;
    int64_t device, inode, size_bytes,
        changed_ns; /* identity when it was opened, to detect changes */
};
/* DL_ERR_INPUT with the name as dl_file_read. *regular_out: false for a pipe or a device, which is
 * closed again. */
enum dl_code dl_file_open(const char *path, struct dl_file_reader *out, bool *regular_out,
                          struct dl_err *err);
/* Fills the buffer; fewer bytes only at the end. */
enum dl_code dl_file_next(struct dl_file_reader *reader, char *buffer, size_t size,
                          size_t *length_out, struct dl_err *err);
void dl_file_close(struct dl_file_reader *reader);

/* A file written in pieces; it replaces the old one when it is complete, as dl_file_write. */
enum { DL_FILE_NAME = 4096 };
struct dl_file_writer {
    int fd;
    bool replaces; /* false: a terminal, a pipe or a device is written in place */
    bool keeps_mode;
    unsigned mode;             /* permissions of the old file */
    const char *name;          /* for errors */
    char target[DL_FILE_NAME]; /* the file to replace */
    char temporary[DL_FILE_NAME + 64];
};
/* After DL_OK call dl_file_end or dl_file_abandon; an error abandons by itself. "-" is stdout. */
enum dl_code dl_file_begin(const char *path, struct dl_file_writer *out, struct dl_err *err);
enum dl_code dl_file_add(struct dl_file_writer *writer, const char *text, size_t length,
                         struct dl_err *err);
enum dl_code dl_file_end(struct dl_file_writer *writer, struct dl_err *err);
void dl_file_abandon(struct dl_file_writer *writer); /* keeps the old file */

/* Replaces a file: writes a temporary file in the same directory, fsync, rename, fsync of the
 * directory. On failure the old file is untouched, the temporary one is removed, and
 * DL_ERR_SYSTEM has the system's reason. "-" is stdout. */
enum dl_code dl_file_write(const char *path, const char *text, size_t length, struct dl_err *err);

/* Creates a directory and its missing parents. DL_ERR_SYSTEM with the system's reason. */
enum dl_code dl_file_mkdirs(const char *path, struct dl_err *err);

#endif
