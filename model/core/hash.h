/* hash.h - FNV-1a, 64 bits: begin with DL_HASH_START, then add bytes or text. Fast and well spread,
 * no protection against whoever chooses the input. */
#ifndef DL_MODEL_CORE_HASH_H
#define DL_MODEL_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define DL_HASH_START 0xcbf29ce484222325u /* offset basis of 64 bits */
uint64_t dl_hash_bytes(uint64_t hash, const void *bytes, size_t length);
uint64_t dl_hash_text(uint64_t hash, const char *text); /* with its end */

#endif
