/* mutate.h - mutations that keep the form of a document, so that what lies behind the syntax is
 * reached: JSON and CSV by their tokens. Half of the time bytes are mutated as libFuzzer does. */
#ifndef DL_TESTS_FUZZ_MUTATE_H
#define DL_TESTS_FUZZ_MUTATE_H

#include <stdint.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* xorshift; never 0 */
static inline uint32_t mutate_random(uint32_t *state) {
    uint32_t x = *state != 0 ? *state : 2463534242u;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}
static inline size_t mutate_below(uint32_t *state, size_t limit) {
    return limit == 0 ? 0 : mutate_random(state) % limit;
}

static const char *const mutate_values[] = {
    "0",      "1",          "-1",   "0.5",    "1e308",     "-0",       "9007199254740993",
    "1e-320", "2147483648", "1e18", "1e400",  "nan",       "null",     "true",
    "\"\"",   "\"a\"",      "[]",   "{}",     "[[1]]",     "\"1 GB\"", "1.5",
    "65536",  "3",          "64",   "\"=1\"", "1000000000"};
enum { MUTATE_VALUES = sizeof mutate_values / sizeof mutate_values[0] };

/* Replaces bytes [begin, end) by others; the size stays when there is no room. */
static inline size_t mutate_splice(uint8_t *data, size_t size, size_t max_size, size_t begin,
                                   size_t end, const void *with, size_t length) {
    if (size - (end - begin) + length > max_size) return size;
    uint8_t kept[4096];
    if (length > sizeof kept) return size;
    memcpy(kept, with, length); /* may lie in the data */
    memmove(data + begin + length, data + end, size - end);
    memcpy(data + begin, kept, length);
    return size - (end - begin) + length;
}

/* A random piece between separators: a value or key of JSON, a cell of a table. */
static inline void mutate_piece(const uint8_t *data, size_t size, const char *separators,
                                uint32_t *state, size_t *begin, size_t *end) {
    size_t at = mutate_below(state, size);
    while (at < size && strchr(separators, data[at]) != NULL && data[at] != 0) at++;
    *begin = *end = at;
    while (*begin > 0 && (data[*begin - 1] == 0 || strchr(separators, data[*begin - 1]) == NULL))
        --*begin;
    while (*end < size && (data[*end] == 0 || strchr(separators, data[*end]) == NULL)) ++*end;
}

/* One piece becomes a telling value, or another piece of the same document, goes, or is there
 * twice; or a stretch between two separators is copied to another place. */
static inline size_t mutate_pieces(uint8_t *data, size_t size, size_t max_size, unsigned seed,
                                   const char *separators) {
    uint32_t state = seed * 2654435761u + 1;
    size_t begin, end, other, other_end;
    if (size == 0 || mutate_below(&state, 2) == 0) return LLVMFuzzerMutate(data, size, max_size);
    mutate_piece(data, size, separators, &state, &begin, &end);
    mutate_piece(data, size, separators, &state, &other, &other_end);
    const char *value = mutate_values[mutate_below(&state, MUTATE_VALUES)];
    switch (mutate_below(&state, 5)) {
    case 0:
    case 1: return mutate_splice(data, size, max_size, begin, end, value, strlen(value));
    case 2: return mutate_splice(data, size, max_size, begin, end, data + other, other_end - other);
    case 3: return mutate_splice(data, size, max_size, begin, end < size ? end + 1 : end, "", 0);
    default: {
        const size_t stop = other_end < size ? other_end + 1 : other_end;
        return mutate_splice(data, size, max_size, begin, begin, data + other, stop - other);
    }
    }
}

#define MUTATE_BY_PIECES(separators)                                                               \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {   \
        return mutate_pieces(data, size, max_size, seed, separators);                              \
    }
/* the colon, commas and brackets stay */
#define MUTATE_JSON() MUTATE_BY_PIECES(",:{}[] \n")
#define MUTATE_CSV() MUTATE_BY_PIECES(",\n")

#endif
