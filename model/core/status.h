/* status.h - one status code and one error record, set once, where the error is found.
 *
 * A function that can fail returns enum dl_code and takes a struct dl_err *. The first function
 * that knows what is wrong sets it (dl_fail, dl_fail_at); callers only pass the code on (DL_TRY).
 * Nothing below dlmodel.c prints. Outputs are written only on success. Never assert() on input.
 */
#ifndef DL_MODEL_CORE_STATUS_H
#define DL_MODEL_CORE_STATUS_H

#include <stddef.h>

/* The values are the process exit statuses. */
enum dl_code {
    DL_OK = 0,
    DL_ERR_NO = 1,    /* negative answer: does not fit, error above --max-error, no feasible plan */
    DL_ERR_USAGE = 2, /* invalid command line */
    DL_ERR_INPUT = 3, /* bad input file */
    DL_ERR_RANGE = 4, /* outside the calibrated range, with --strict */
    DL_ERR_SYSTEM = 5,    /* system error: file, memory, permission */
    DL_ERR_BACKEND = 6,   /* CUDA, cuDNN, NCCL, MPI or Slurm failed */
    DL_ERR_CANCELLED = 7, /* the caller of the library stopped it; no exit status */
};

struct dl_err {
    enum dl_code code;
    int line, col;     /* 1-based; 0 when there is no position */
    char file[512];    /* "" when no file is at fault */
    char key[192];     /* dotted key path or option name, "" when none */
    char message[768]; /* what was expected, and what was found */
};

/* Sets *err (may be NULL) and returns `code`. */
enum dl_code dl_fail(struct dl_err *err, enum dl_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a place in a file; code is DL_ERR_INPUT. line = 0: no position known. key may be
 * NULL. */
enum dl_code dl_fail_at(struct dl_err *err, const char *file, int line, int col, const char *key,
                        const char *format, ...) __attribute__((format(printf, 6, 7)));

#ifdef __clang_analyzer__ /* the analyzer does not see that dl_fail never returns DL_OK */
#define dl_fail(err, code, ...) ((void)(dl_fail)(err, code, __VA_ARGS__), (code))
#define dl_fail_at(...) ((void)(dl_fail_at)(__VA_ARGS__), DL_ERR_INPUT)
#endif

/* Makes text safe for a terminal, in place: control characters (C0, DEL, and C1 as UTF-8) become
 * '?', except those in `kept`. A name in a file must not move the cursor or set a title. */
void dl_text_printable(char *text, const char *kept);

/* Text of an error, without newline: "FILE:LINE:COL: error: KEY: message" when a file is at fault,
 * else "WHO: KEY: message" (WHO: e.g. "dlmodel predict"). Control characters are replaced by '?'.
 */
void dl_err_text(const struct dl_err *err, const char *who, char *out, size_t out_size);

/* Nearest of `names` (NULL-terminated) to `word` by edit distance, or NULL when none is near. */
const char *dl_suggest(const char *word, const char *const *names);

#define DL_TRY(call)                                                                               \
    do {                                                                                           \
        enum dl_code dl_try_code = (call);                                                         \
        if (dl_try_code != DL_OK) return dl_try_code;                                              \
    } while (0)

#endif
