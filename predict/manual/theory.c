/* theory.c - looks up formulas in the theory manual. */
#include "predict/manual/theory.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "predict/manual/wrap.h"

enum { IDS = 512, ID_TEXT = 48 };

struct ids {
    char text[IDS][ID_TEXT];
    int count;
};

/* Bytes of the id at `s` ("F-COLL-RING"); 0: none. */
static size_t id_length(const char *s) {
    size_t n = 2;
    if (s[0] != 'F' || s[1] != '-' || !isupper((unsigned char)s[2])) return 0;
    while (isupper((unsigned char)s[n]) || isdigit((unsigned char)s[n]) ||
           (s[n] == '-' && (isupper((unsigned char)s[n + 1]) || isdigit((unsigned char)s[n + 1]))))
        n++;
    return n;
}

static void collect(struct ids *ids) {
    for (int i = 0; dl_formula_lines[i] != NULL; i++) {
        const char *end = strchr(dl_formula_lines[i] + 1, '|');
        for (const char *s = dl_formula_lines[i]; s < end; s++) {
            const size_t length = id_length(s);
            if (length == 0 || length >= ID_TEXT || ids->count == IDS) continue;
            snprintf(ids->text[ids->count++], ID_TEXT, "%.*s", (int)length, s);
            s += length - 1;
        }
    }
}

/* "nccl" and "f-nccl" are F-NCCL. */
static void full_id(const char *given, char out[ID_TEXT]) {
    const bool has = (given[0] == 'F' || given[0] == 'f') && given[1] == '-';
    snprintf(out, ID_TEXT, "%s%s", has ? "" : "F-", given);
    for (char *c = out; *c != 0; c++) *c = (char)toupper((unsigned char)*c);
}

static bool speaks_of(const char *line, const char *id) {
    const size_t length = strlen(id);
    for (const char *s = line; (s = strstr(s, id)) != NULL; s += length) {
        if (id_length(s) == length && (s == line || !isupper((unsigned char)s[-1]))) return true;
    }
    return false;
}

static bool is_row(const char *line) { return line[0] == '|'; }

static bool is_prose(const char *line) { return line[0] != 0 && line[0] != '#' && !is_row(line); }

/* First line of the paragraph, item of a list or row of a table that holds line i. */
static int begin_of(int i) {
    while (i > 0 && dl_theory_lines[i][0] != 0 && !is_row(dl_theory_lines[i]) &&
           strncmp(dl_theory_lines[i], "- ", 2) != 0 &&
           strncmp(dl_theory_lines[i], "**F-", 4) != 0 && dl_theory_lines[i - 1][0] != 0)
        i--;
    return i;
}

/* The line after it. */
static int end_of(int begin) {
    int i = begin + 1;
    if (is_row(dl_theory_lines[begin])) return i;
    while (dl_theory_lines[i] != NULL && dl_theory_lines[i][0] != 0 &&
           strncmp(dl_theory_lines[i], "- ", 2) != 0 && strncmp(dl_theory_lines[i], "**F-", 4) != 0)
        i++;
    return i;
}

enum { WIDTH = 100, LABEL = 11 };

/* Removes Markdown markup that has no meaning in a terminal; NULL: out of memory. */
static char *plain(struct dl_arena *arena, const char *text) {
    char *out = dl_arena_alloc(arena, strlen(text) + 1, 1), *end = out;
    for (const char *s = text; *s != 0; s++) {
        if (s[0] == '*' && s[1] == '*')
            s++;
        else if (*s != '`')
            *end++ = *s;
    }
    *end = 0;
    return out;
}

/* A line wrapped to the width of the screen; continuation lines are indented by `lead` bytes. */
static void add_plain(struct dl_text *out, const char *text, int lead) {
    const char *line = plain(out->arena, text);
    if (strlen(line) <= WIDTH) {
        dl_text_add(out, line);
        dl_text_add(out, "\n");
        return;
    }
    dl_text_printf(out, "%.*s", lead, line);
    dl_text_wrap(out, line + lead, lead, WIDTH);
}

/* The lines of a paragraph or item of a list as one. */
static void add_paragraph(struct dl_text *out, int begin, int end) {
    const char *text = dl_theory_lines[begin];
    for (int i = begin + 1; i < end; i++) {
        text = dl_arena_printf(out->arena, "%s %s", text,
                               dl_theory_lines[i] + strspn(dl_theory_lines[i], " "));
    }
    add_plain(out, text, strncmp(text, "- ", 2) == 0 ? 2 : 0);
}

/* Cell `number` of a row of a table, without blanks around it; "" beyond the last. */
static const char *cell(struct dl_arena *arena, const char *row, int number) {
    for (int c = 0; c <= number && row != NULL; c++)
        row = strchr(row, '|') == NULL ? NULL : strchr(row, '|') + 1;
    if (row == NULL || *row == 0) return "";
    row += strspn(row, " ");
    size_t length = strcspn(row, "|");
    while (length > 0 && row[length - 1] == ' ') length--;
    const char *text = dl_arena_strndup(arena, row, length);
    return text;
}

/* Meaning and source are of section 8 of the manual, files of the index. */
static void describe(struct dl_text *out, const char *id) {
    struct dl_arena *arena = out->arena;
    const char *row = "", *code = "";
    for (int i = 0; dl_theory_lines[i] != NULL; i++) {
        if (is_row(dl_theory_lines[i]) && strcmp(cell(arena, dl_theory_lines[i], 0), id) == 0)
            row = dl_theory_lines[i];
    }
    for (int i = 0; dl_formula_lines[i] != NULL; i++) {
        if (speaks_of(cell(arena, dl_formula_lines[i], 0), id))
            code = cell(arena, dl_formula_lines[i], 1);
    }
    add_plain(out, dl_arena_printf(arena, "%s: %s", id, cell(arena, row, 1)), 0);
    add_plain(out, dl_arena_printf(arena, "  code     %s", code), LABEL);
    add_plain(out, dl_arena_printf(arena, "  source   %s", cell(arena, row, 5)), LABEL);
}

static enum dl_code unknown(const struct ids *ids, const char *given, struct dl_err *err) {
    const char *names[IDS + 1];
    for (int i = 0; i < ids->count; i++) names[i] = ids->text[i];
    names[ids->count] = NULL;
    const char *near = dl_suggest(given, names);
    if (near != NULL)
        return dl_fail(err, DL_ERR_USAGE, "no formula '%.60s'; did you mean '%s'?", given, near);
    return dl_fail(err, DL_ERR_USAGE, "no formula '%.60s'; 'dlmodel help theory' lists them",
                   given);
}

enum dl_code dl_theory_help(struct dl_text *out, const char *given, struct dl_err *err) {
    if (given == NULL) {
        for (int i = 0; dl_theory_lines[i] != NULL; i++) {
            const int end = is_prose(dl_theory_lines[i]) ? end_of(i) : i + 1;
            if (end > i + 1)
                add_paragraph(out, i, end);
            else
                add_plain(out, dl_theory_lines[i], 2);
            i = end - 1;
        }
        return DL_OK;
    }
    struct ids *ids = dl_arena_alloc(out->arena, 1, sizeof *ids);
    char id[ID_TEXT];
    bool known = false;
    collect(ids);
    full_id(given, id);
    for (int i = 0; i < ids->count && !known; i++) known = strcmp(ids->text[i], id) == 0;
    if (!known) return unknown(ids, id, err);
    describe(out, id);
    const char *columns[8];
    int column_count = 0;
    for (int i = 0; dl_theory_lines[i] != NULL; i++) {
        const char *line = dl_theory_lines[i];
        /* the heads of a table */
        if (is_row(line) && (i == 0 || !is_row(dl_theory_lines[i - 1]))) {
            for (column_count = 0; column_count < 8; column_count++)
                columns[column_count] = cell(out->arena, line, column_count);
        }
        if (!speaks_of(line, id)) continue;
        dl_text_add(out, "\n");
        if (is_row(line)) {
            for (int c = 1; c < column_count; c++) {
                const char *text = cell(out->arena, line, c);
                /* the first lines have meaning and source */
                if (text[0] == 0 || strcmp(columns[c], "what") == 0 ||
                    strcmp(columns[c], "source") == 0)
                    continue;
                add_plain(out, dl_arena_printf(out->arena, "  %-8s %s", columns[c], text), LABEL);
            }
            continue;
        }
        const int begin = begin_of(i), end = end_of(begin);
        add_paragraph(out, begin, end);
        i = end - 1;
    }
    return DL_OK;
}
