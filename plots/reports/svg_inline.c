/* svg_inline.c - gnuplot's SVG as an element of a page. Ids and references to them get a prefix.
 * Elements that do not draw are refused, so that a title or label that became markup is caught
 * here. */
#include "plots/reports/document.h"

#include <ctype.h>
#include <string.h>

static const char *const elements[] = {
    "svg",      "title",          "desc",    "g",        "rect",    "defs",
    "circle",   "path",           "use",     "filter",   "feFlood", "feComposite",
    "text",     "tspan",          "polygon", "polyline", "line",    "pattern",
    "clipPath", "linearGradient", "stop",    NULL,
};

static bool allowed(const char *name, size_t length) {
    for (int i = 0; elements[i] != NULL; i++) {
        if (strlen(elements[i]) == length && strncmp(elements[i], name, length) == 0) return true;
    }
    return false;
}

/* Bytes of the tag at `tag` ("<g ...>") with its closing bracket; a bracket inside quotes does not
 * close it. 0: it never ends. */
static size_t tag_length(const char *tag) {
    char quote = 0;
    for (const char *s = tag; *s != 0; s++) {
        if (quote != 0)
            quote = *s == quote ? 0 : quote;
        else if (*s == '"' || *s == '\'')
            quote = *s;
        else if (*s == '>')
            return (size_t)(s - tag) + 1;
    }
    return 0;
}

/* The attribute that begins at `at` inside a tag runs code or loads something. */
static bool harmful(const char *at) {
    static const char *const words[] = {"href=\"#", "href='#", NULL};
    if ((at[0] == 'o' || at[0] == 'O') && (at[1] == 'n' || at[1] == 'N') &&
        isalpha((unsigned char)at[2]))
        return true;
    const char *href = strncmp(at, "xlink:", 6) == 0 ? at + 6 : at;
    if (strncmp(href, "href", 4) != 0) return strncmp(at, "src", 3) == 0;
    for (int i = 0; words[i] != NULL; i++) {
        if (strncmp(href, words[i], strlen(words[i])) == 0) return false;
    }
    return true;
}

/* The length of the text from `s` to the next id or reference to one. */
static size_t before_id(const char *s) {
    static const char *const marks[] = {"id=\"", "id='", "href=\"#", "href='#", "url(#", NULL};
    for (int i = 0; marks[i] != NULL; i++) {
        if (strncmp(s, marks[i], strlen(marks[i])) == 0) return strlen(marks[i]);
    }
    return 0;
}

static enum dl_code add_tag(const char *tag, size_t length, const char *prefix, struct dl_text *out,
                            struct dl_err *err) {
    const char *name = tag + (tag[1] == '/' ? 2 : 1);
    if (!allowed(name, strcspn(name, " \t\r\n/>"))) {
        return dl_fail(err, DL_ERR_SYSTEM,
                       "gnuplot drew an element that does not belong in a figure: %.40s", tag);
    }
    char *copy = dl_arena_strndup(out->arena, tag, length);
    char quote = 0, *from = copy;
    for (char *s = copy; *s != 0; s++) {
        const bool first = s > copy && (isspace((unsigned char)s[-1]) || s[-1] == ':');
        if (quote == 0 && first && harmful(s)) {
            return dl_fail(err, DL_ERR_SYSTEM,
                           "gnuplot wrote an attribute that does not belong in a figure: %.40s", s);
        }
        const size_t skip = (quote == 0 && first) || strncmp(s, "url(#", 5) == 0 ? before_id(s) : 0;
        if (skip > 0) {
            const char kept = s[skip];
            s[skip] = 0;
            dl_text_add(out, from);
            dl_text_add(out, prefix);
            s[skip] = kept;
            from = s + skip;
        }
        if (quote != 0)
            quote = *s == quote ? 0 : quote;
        else if (*s == '"' || *s == '\'')
            quote = *s;
    }
    dl_text_add(out, from);
    return DL_OK;
}

enum dl_code dl_svg_inline(const char *svg, const char *prefix, struct dl_text *out,
                           struct dl_err *err) {
    const char *s = strstr(svg, "<svg");
    if (s == NULL || prefix == NULL) return dl_fail(err, DL_ERR_SYSTEM, "gnuplot wrote no SVG");
    while (*s != 0) {
        if (*s != '<') {
            const size_t length = strcspn(s, "<");
            const char *text = dl_arena_strndup(out->arena, s, length);
            dl_text_add(out, text);
            s += length;
            continue;
        }
        const size_t length = tag_length(s);
        if (length == 0)
            return dl_fail(err, DL_ERR_SYSTEM, "gnuplot wrote an SVG that does not end");
        DL_TRY(add_tag(s, length, prefix, out, err));
        s += length;
    }
    return DL_OK;
}
