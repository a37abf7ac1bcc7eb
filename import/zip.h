/* zip.h - one file of a ZIP archive: stored, or deflated where the program has zlib. */
#ifndef DL_IMPORT_ZIP_H
#define DL_IMPORT_ZIP_H

#include <stddef.h>

#include "model/core/arena.h"
#include "model/core/status.h"

struct dl_zip {
    const char *path; /* for messages */
    const unsigned char *bytes;
    size_t length;
};
/* The first file of the archive whose name ends in `name`, of at most `most` bytes; *text is NULL
 * if no file has that name or the bytes are no archive. DL_ERR_INPUT: damaged, encrypted or packed
 * in another way. DL_ERR_BACKEND: deflated, and built without zlib. */
enum dl_code dl_zip_file(const struct dl_zip *zip, const char *name, size_t most,
                         struct dl_arena *arena, char **text, size_t *size, struct dl_err *err);

#endif
