/* hash.h - FNV-1a, 64 bits: start with DL_HASH_START, then add bytes or text. Not resistant to
 * chosen input. */
#ifndef DL_MODEL_CORE_HASH_H
#define DL_MODEL_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define DL_HASH_START 0xcbf29ce484222325u /* offset basis of 64 bits */
uint64_t dl_hash_bytes(uint64_t hash, const void *bytes, size_t length);
uint64_t dl_hash_text(uint64_t hash, const char *text); /* with its terminating NUL */

#endif
