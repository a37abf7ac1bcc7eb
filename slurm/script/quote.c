/* quote.c - see the header. */
#include "slurm/script/quote.h"

#include <stdbool.h>
#include <string.h>

#include "model/core/text.h"

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

const char *dl_sl_quote_option(struct dl_arena *arena, const char *key, const char *value) {
    const char *quoted = dl_shell_quote(arena, value);
    return quoted == NULL ? NULL : dl_arena_printf(arena, "--%s=%s", key, quoted);
}

enum dl_code dl_sl_directive(struct dl_arena *arena, const char *what, const char *value,
                             const char **out, struct dl_err *err) {
    char *text = dl_arena_alloc(arena, 2 * strlen(value) + 1, 1), *at = text;
    for (; *value != 0; value++) {
        const unsigned char c = (unsigned char)*value;
        if (c < 0x20 || c == 0x7f)
            return dl_fail(err, DL_ERR_USAGE, "%s: expected text without control characters", what);
        if (!is_word(*value) && strchr("_.,:/=+@%-", *value) == NULL) *at++ = '\\';
        *at++ = *value;
    }
    *at = 0;
    *out = text;
    return DL_OK;
}

const char *dl_sl_tame(struct dl_arena *arena, const char *text) {
    enum { LONGEST = 120 };
    char *out = dl_arena_strndup(arena, text, strlen(text) < LONGEST ? strlen(text) : LONGEST);
    if (*out == 0) return "_";
    for (char *c = out; *c != 0; c++) {
        if (!is_word(*c) && strchr("._+=-", *c) == NULL) *c = '_';
    }
    if (*out == '-' || *out == '.') *out = '_';
    return out;
}
