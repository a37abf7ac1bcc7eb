/* file.h - reading whole files, and writing them so that a reader sees the old one or the new one.
 * The model's only I/O besides JSON; kept here because calibrate/, predict/ and slurm/ all need it.
 */
#ifndef DL_MODEL_BASE_FILE_H
#define DL_MODEL_BASE_FILE_H

#include "model/base/arena.h"
#include "model/base/status.h"

/* Whole regular file (or pipe) into the arena, NUL-terminated. A directory, an unreadable or
 * missing file, one of more than max_bytes: DL_ERR_INPUT with the name. */
enum dl_code dl_file_read(const char *path, size_t max_bytes, struct dl_arena *arena,
                          char **text_out, size_t *length_out, struct dl_err *err);

/* Temporary file in the same directory, write, fsync, rename, fsync of the directory. On any
 * failure the old file is untouched and the temporary one removed. DL_ERR_SYSTEM with the system's
 * reason. "-" is stdout. */
enum dl_code dl_file_write(const char *path, const char *text, size_t length, struct dl_err *err);

/* mkdir -p of a directory. */
enum dl_code dl_file_mkdirs(const char *path, struct dl_err *err);

#endif
