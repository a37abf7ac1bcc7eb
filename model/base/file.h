/* file.h - reads whole files, and writes them so that a reader sees either the old or the new one.
 * The model's only I/O apart from JSON; it is here because calibrate/, predict/ and slurm/ need it.
 */
#ifndef DL_MODEL_BASE_FILE_H
#define DL_MODEL_BASE_FILE_H

#include "model/base/arena.h"
#include "model/base/status.h"

/* Reads a whole regular file or pipe into the arena, NUL-terminated. DL_ERR_INPUT with the name for
 * a directory, a missing or unreadable file, or more than max_bytes. */
enum dl_code dl_file_read(const char *path, size_t max_bytes, struct dl_arena *arena,
                          char **text_out, size_t *length_out, struct dl_err *err);

/* Replaces a file: writes a temporary file in the same directory, fsync, rename, fsync of the
 * directory. On failure the old file is untouched, the temporary one is removed, and
 * DL_ERR_SYSTEM has the system's reason. "-" is stdout. */
enum dl_code dl_file_write(const char *path, const char *text, size_t length, struct dl_err *err);

/* Creates a directory and its missing parents. DL_ERR_SYSTEM with the system's reason. */
enum dl_code dl_file_mkdirs(const char *path, struct dl_err *err);

#endif
