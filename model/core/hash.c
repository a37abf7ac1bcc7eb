/* hash.c - FNV-1a (Fowler, Noll, Vo). */
#include "model/core/hash.h"

#include <string.h>

uint64_t dl_hash_bytes(uint64_t hash, const void *bytes, size_t length) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

uint64_t dl_hash_text(uint64_t hash, const char *text) {
    return dl_hash_bytes(hash, text, strlen(text) + 1);
}
