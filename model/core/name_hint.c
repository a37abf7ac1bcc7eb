/* name_hint.c - see name_hint.h. People write v100 for one of twelve systems, or BERT-Large for
 * bert_large: edit distance alone would find one of many names, or none. */
#include "model/core/name_hint.h"

#include <string.h>

enum { MAX_SHOWN = 8, LEAST_LETTERS = 3 };

/* The form in which names are compared: without case, and without separators between words. */
static const char *plain(const char *name, struct dl_arena *arena) {
    char *out = dl_arena_strdup(arena, name);
    size_t n = 0;

    for (; *name != '\0'; name++)
        if (strchr("-_. ", *name) == NULL)
            out[n++] = (char)(*name >= 'A' && *name <= 'Z' ? *name - 'A' + 'a' : *name);
    out[n] = '\0';
    return out;
}

/* The names that contain `name`: "a", "b" or "c"; NULL when there is none. */
static const char *holding(const char *name, const char *const *names, struct dl_arena *arena) {
    const char *part = plain(name, arena), *found[MAX_SHOWN] = {NULL}, *list = "";
    int count = 0;

    if (strlen(part) < LEAST_LETTERS) return NULL;
    for (; *names != NULL; names++) {
        const char *whole = plain(*names, arena);

        if (strstr(whole, part) == NULL) continue;
        if (count < MAX_SHOWN) found[count] = *names;
        count++;
    }
    for (int i = 0; i < count && i < MAX_SHOWN; i++)
        list = dl_arena_printf(arena, "%s%s\"%s\"", list,
                               i == 0           ? ""
                               : i + 1 == count ? " or "
                                                : ", ",
                               found[i]);
    if (count > MAX_SHOWN) list = dl_arena_printf(arena, "%s, ...", list);
    return count == 0 ? NULL : list;
}

enum dl_code dl_name_hint(const char *word, const char *listed, const char *name,
                          const char *const *names, struct dl_arena *arena, struct dl_err *err) {
    const char *near = holding(name, names, arena);

    if (near == NULL && (near = dl_suggest(name, names)) != NULL)
        near = dl_arena_printf(arena, "\"%s\"", near);
    if (near == NULL)
        return dl_fail(err, DL_ERR_USAGE, "no %s \"%s\"; 'dlmodel list %s' shows the names", word,
                       name, listed);
    return dl_fail(err, DL_ERR_USAGE,
                   "no %s \"%s\"; did you mean %s? ('dlmodel list %s' shows all)", word, name, near,
                   listed);
}
