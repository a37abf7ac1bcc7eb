/* tokens.h - reads the file of access tokens. */
#ifndef DL_SERVE_TOKENS_H
#define DL_SERVE_TOKENS_H

#include "model/core/arena.h"
#include "model/core/status.h"

enum { DL_MAX_TOKENS = 64 };

/* One token per line, at least 16 characters; '#' begins a comment. path NULL: none, *count is 0.
 * `tokens` has room for DL_MAX_TOKENS. DL_ERR_INPUT: a file readable by others, a short token, too
 * many tokens, or none. */
enum dl_code dl_tokens_read(const char *path, struct dl_arena *arena, const char **tokens,
                            int *count, struct dl_err *err);

#endif
