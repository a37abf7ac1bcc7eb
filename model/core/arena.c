/* arena.c - a chain of blocks that is freed as one.
 * Not for objects that must be freed one by one, and not shared between threads.
 */
#define _DEFAULT_SOURCE /* madvise */
#include "model/core/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Under AddressSanitizer every object gets its own block, so that reading past its end is
 * detected. */
#if defined(__SANITIZE_ADDRESS__)
#define DL_ARENA_BLOCK_BYTES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DL_ARENA_BLOCK_BYTES 0
#endif
#endif
/* The fast fuzzers set it too: to zero 16 KiB takes longer than to parse a short text. */
#ifndef DL_ARENA_BLOCK_BYTES
#define DL_ARENA_BLOCK_BYTES 16384
#endif
enum { MIN_BLOCK_BYTES = DL_ARENA_BLOCK_BYTES };
enum { MAX_BLOCK_BYTES = 1 << 20 };
enum { PAGE_BYTES = 4096, READY_BYTES = 1 << 16, MAPPED_BYTES = 1 << 17 };

struct dl_arena_block {
    struct dl_arena_block *next;
    size_t used_bytes, capacity_bytes;
    size_t ready_bytes; /* what was asked for ahead; all of a small block */
    alignas(max_align_t) unsigned char bytes[];
};

struct guard {
    jmp_buf escape;
    struct guard *outer;
};
/* The only state of model/ that outlives a call: which code of this thread to abandon. */
static _Thread_local struct guard *innermost;

enum dl_code dl_guarded(enum dl_code (*run)(void *state, struct dl_err *err), void *state,
                        struct dl_err *err) {
    struct guard guard = {.outer = innermost};
    enum dl_code code;
    innermost = &guard;
    if (setjmp(guard.escape) == 0)
        code = run(state, err);
    else
        code = dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    innermost = guard.outer;
    return code;
}

static void *exhausted(void) {
    if (innermost != NULL) longjmp(innermost->escape, 1);
    return NULL;
}

static struct dl_arena_block *block_add(struct dl_arena *arena, size_t bytes) {
    struct dl_arena_block *block;
    size_t capacity_bytes = MIN_BLOCK_BYTES;

    if (MIN_BLOCK_BYTES > 0 && arena->head != NULL) {
        capacity_bytes = arena->head->capacity_bytes * 2;
        if (capacity_bytes > MAX_BLOCK_BYTES) capacity_bytes = MAX_BLOCK_BYTES;
    }
    if (capacity_bytes < bytes) capacity_bytes = bytes;
    if (capacity_bytes > SIZE_MAX - sizeof *block) return NULL;
    block = calloc(1, sizeof *block + capacity_bytes);
    if (block == NULL) return NULL;
    block->capacity_bytes = capacity_bytes;
    block->ready_bytes = capacity_bytes < MAPPED_BYTES ? capacity_bytes : 0;
    block->next = arena->head;
    arena->head = block;
    return block;
}

void dl_arena_reserve(struct dl_arena *arena, size_t bytes) {
    if (MIN_BLOCK_BYTES > 0) (void)block_add(arena, bytes);
}

/* Asks the kernel for the next pages of a large block, whose memory is mapped but not yet there: 16
 * at once take half the time of 16 first touches, a tenth of a cold prediction. Of an object larger
 * than that, which is filled from its beginning, the pages that it never uses are not made. Where
 * the kernel refuses, pages come one by one. */
static void make_ready(struct dl_arena_block *block, size_t bytes) {
    const size_t begin = block->used_bytes, room = block->capacity_bytes - begin,
                 ahead = room < READY_BYTES ? room : READY_BYTES;
#ifdef MADV_POPULATE_WRITE
    const uintptr_t first = ((uintptr_t)block->bytes + begin + PAGE_BYTES - 1) / PAGE_BYTES,
                    last = ((uintptr_t)block->bytes + begin + ahead) / PAGE_BYTES;
    if (last > first)
        (void)madvise((void *)(first * PAGE_BYTES), (last - first) * PAGE_BYTES,
                      MADV_POPULATE_WRITE);
#endif
    block->ready_bytes = begin + (bytes > ahead ? bytes : ahead);
}

void *dl_arena_alloc(struct dl_arena *arena, size_t count, size_t bytes_each) {
    const size_t align = alignof(max_align_t);
    struct dl_arena_block *block = arena->head;
    size_t bytes;
    void *result;

    /* factors below 2^31 have a product below 2^62: nearly all, without a division */
    if ((count | bytes_each) >> 31 != 0 && bytes_each != 0 &&
        count > (SIZE_MAX - align) / bytes_each)
        return exhausted();
    bytes = count * bytes_each;
    if (MIN_BLOCK_BYTES > 0) bytes = (bytes + align - 1) / align * align;
    if (bytes == 0) bytes = align; /* a unique pointer, also for count = 0 */
    if (block == NULL || block->capacity_bytes - block->used_bytes < bytes)
        block = block_add(arena, bytes);
    if (block == NULL) return exhausted();
    if (block->used_bytes + bytes > block->ready_bytes) make_ready(block, bytes);
    result = block->bytes + block->used_bytes;
    block->used_bytes += bytes;
    arena->total_bytes += bytes;
    return result;
}

void *dl_arena_grow(struct dl_arena *arena, void *items, size_t count, size_t bytes_each) {
    enum { FIRST = 16 };
    const bool full = count == 0 || (count >= FIRST && (count & (count - 1)) == 0);
    if (!full) return items;
    void *more = dl_arena_alloc(arena, count == 0 ? FIRST : 2 * count, bytes_each);
    if (count > 0) memcpy(more, items, count * bytes_each);
    return more;
}

char *dl_arena_strndup(struct dl_arena *arena, const char *text, size_t length) {
    char *copy;

    if (length == SIZE_MAX) return exhausted();
    copy = dl_arena_alloc(arena, length + 1, 1);
    if (length > 0) memcpy(copy, text, length);
    return copy;
}

char *dl_arena_strdup(struct dl_arena *arena, const char *text) {
    return text == NULL ? NULL : dl_arena_strndup(arena, text, strlen(text));
}

char *dl_arena_printf(struct dl_arena *arena, const char *format, ...) {
    char brief[256]; /* most texts are shorter and need no second pass */
    va_list arguments;
    char *text;
    int length;

    va_start(arguments, format);
    length = vsnprintf(brief, sizeof brief, format, arguments);
    va_end(arguments);
    if (length < 0) return exhausted();
    if ((size_t)length < sizeof brief) return dl_arena_strndup(arena, brief, (size_t)length);
    text = dl_arena_alloc(arena, (size_t)length + 1, 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

static void free_blocks(struct dl_arena_block *block) {
    while (block != NULL) {
        struct dl_arena_block *next = block->next;

        free(block);
        block = next;
    }
}

void dl_arena_free(struct dl_arena *arena) {
    free_blocks(arena->head);
    arena->head = NULL;
    arena->total_bytes = 0;
}

void dl_arena_clear(struct dl_arena *arena) {
    enum { MOST_KEPT_BYTES = 4 << 20 };
    struct dl_arena_block *kept = arena->head;

    if (MIN_BLOCK_BYTES == 0 || kept == NULL || kept->capacity_bytes > MOST_KEPT_BYTES) {
        dl_arena_free(arena);
        return;
    }
    free_blocks(kept->next);
    kept->next = NULL;
    memset(kept->bytes, 0, kept->used_bytes);
    kept->used_bytes = 0;
    arena->total_bytes = 0;
}
