/* cmd_cite.c - BibTeX of this program and of the sources of an answer or of tables of
 * measurements. */
#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "model/core/csv.h"
#include "model/core/text.h"
#include "predict/inputs/inputs.h"

enum { MOST_BYTES = 64 << 20 };

static const struct dl_option *const tables[] = {dl_input_options, dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel cite",
    "dlmodel cite --system iris-v100 --workload resnet50 --framework pytorch-ddp -o sources.bib",
    "dlmodel cite data/runs/keras_aws.csv",
    NULL,
};

struct sources {
    const char **keys, **texts; /* of SOURCES.md, in its order */
    bool *cited;
    int count;
};

/* "- `key`: text" lines, except below a heading that calls its keys "not publications". */
static void parse(char *text, struct dl_arena *arena, struct sources *out) {
    int lines = 1;
    bool publications = true;
    for (const char *c = text; *c != 0; c++) lines += *c == '\n';
    out->keys = dl_arena_alloc(arena, (size_t)lines, sizeof *out->keys);
    out->texts = dl_arena_alloc(arena, (size_t)lines, sizeof *out->texts);
    out->cited = dl_arena_alloc(arena, (size_t)lines, sizeof *out->cited);
    for (char *line = text; line != NULL && *line != 0;) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = 0;
        char *close = strncmp(line, "- `", 3) == 0 ? strstr(line, "`: ") : NULL;
        if (close != NULL && publications) {
            *close = 0;
            out->keys[out->count] = line + 3;
            out->texts[out->count++] = close + 3;
        } else if (close == NULL && *line != 0) {
            publications = strstr(line, "not publications") == NULL;
        }
        line = end == NULL ? NULL : end + 1;
    }
}

static enum dl_code read_sources(struct dl_context *context, struct sources *out,
                                 struct dl_err *err) {
    const struct dl_data *data = &context->data;
    *out = (struct sources){.count = 0};
    const char *path = dl_data_file(data, "SOURCES.md", context->arena);
    if (path == NULL) return dl_fail(err, DL_ERR_SYSTEM, "no SOURCES.md in the data directories");
    char *text;
    size_t length;
    DL_TRY(dl_data_read(data, path, MOST_BYTES, context->arena, &text, &length, err));
    parse(text, context->arena, out);
    return DL_OK;
}

/* Whether a JSON text has the key as a whole string, or in a list separated by ", ". */
static bool names(const char *text, const char *key) {
    const size_t length = strlen(key);
    for (const char *at = strstr(text, key); at != NULL; at = strstr(at + 1, key)) {
        const char before = at == text ? 0 : at[-1], after = at[length];
        if ((before == '"' || before == ' ') && (after == '"' || after == ',' || after == ' '))
            return true;
    }
    return false;
}

static enum dl_code cite_answer(struct dl_context *context, const struct dl_options *options,
                                struct sources *sources, struct dl_err *err) {
    struct dl_inputs inputs;
    struct dl_input_file files[DL_MAX_INPUT_FILES];
    DL_TRY(dl_inputs_load(context, options, &inputs, err));
    const int count = dl_inputs_files(context, &inputs, files);
    for (int i = 0; i < count; i++) {
        char *text;
        size_t length;
        const char *path = files[i].path;
        for (int d = 0; d < context->data.directory_count && access(path, R_OK) != 0; d++)
            path = dl_arena_printf(context->arena, "%s/%s", context->data.directories[d],
                                   files[i].path);
        DL_TRY(dl_data_read(&context->data, path, MOST_BYTES, context->arena, &text, &length, err));
        for (int k = 0; k < sources->count; k++)
            if (names(text, sources->keys[k])) sources->cited[k] = true;
    }
    return DL_OK;
}

/* The first year in a text; 0 if it has none. */
static int year_of(const char *text) {
    for (const char *c = text; *c != 0; c++) {
        const bool starts = c == text || !isalnum((unsigned char)c[-1]);
        if (starts && (strncmp(c, "20", 2) == 0 || strncmp(c, "19", 2) == 0) &&
            isdigit((unsigned char)c[2]) && isdigit((unsigned char)c[3]) &&
            !isalnum((unsigned char)c[4]))
            return (c[0] - '0') * 1000 + (c[1] - '0') * 100 + (c[2] - '0') * 10 + c[3] - '0';
    }
    return 0;
}

/* For TeX; back quotes, which mark code, are left out. */
static void add_tex(struct dl_text *out, const char *text) {
    for (const char *c = text; *c != 0; c++) {
        if (strchr("&%$#_{}", *c) != NULL)
            dl_text_printf(out, "\\%c", *c);
        else if (*c == '~' || *c == '^')
            dl_text_printf(out, "\\%c{}", *c);
        else if (*c == '\\')
            dl_text_add(out, "\\textbackslash{}");
        else if (*c != '`')
            dl_text_printf(out, "%c", *c);
    }
}

static void add_entry(struct dl_text *out, const char *key, const char *text) {
    const int year = year_of(text);
    dl_text_printf(out, "@misc{%s,\n  title = {{", key);
    add_tex(out, text);
    dl_text_add(out, "}}");
    if (year > 0) dl_text_printf(out, ",\n  year = {%d}", year);
    dl_text_add(out, "\n}\n\n");
}

/* A unique key of letters, digits and dashes from a source's name. */
static const char *key_of(struct dl_arena *arena, const char *source, int number) {
    char *key = dl_arena_strndup(arena, source, 40);
    for (char *c = key; *c != 0; c++)
        *c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '-';
    return dl_arena_printf(arena, "%s-%d", key, number);
}

/* Each source of the tables' rows, once. */
static enum dl_code cite_tables(struct dl_context *context, const struct dl_options *options,
                                struct dl_text *out, struct dl_err *err) {
    const char **seen = NULL;
    int count = 0;
    for (int i = 0; i < options->positional_count; i++) {
        struct dl_csv csv;
        DL_TRY(dl_data_csv(&context->data, options->positional[i], context->arena, &csv, err));
        const int column = dl_csv_column(&csv, "source");
        if (column < 0)
            return dl_fail_at(err, options->positional[i], 1, 1, "source",
                              "expected a table with this column");
        for (int row = 0; row < csv.row_count; row++) {
            int k = 0;
            while (k < count && strcmp(seen[k], csv.rows[row][column]) != 0) k++;
            if (k < count || csv.rows[row][column][0] == 0) continue;
            seen = dl_arena_grow(context->arena, seen, (size_t)count, sizeof *seen);
            seen[count++] = csv.rows[row][column];
            add_entry(out, key_of(context->arena, seen[count - 1], count), seen[count - 1]);
        }
    }
    return DL_OK;
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    struct dl_text out = {.arena = context->arena};
    struct sources sources;
    enum dl_format format = DL_FORMAT_TEXT;
    DL_TRY(dl_output_format(options, &format, err));
    if (format != DL_FORMAT_TEXT) return dl_fail(err, DL_ERR_USAGE, "--format: cite prints BibTeX");
    dl_text_printf(&out,
                   "@software{dlmodel,\n  title = {{dlmodel: a performance model of training deep "
                   "networks on clusters}},\n  author = {{dlmodel developers}},\n  note = "
                   "{%s}\n}\n\n",
                   dl_version_text);
    if (options->positional_count > 0) {
        DL_TRY(cite_tables(context, options, &out, err));
    } else if (options->given_count > 0) {
        DL_TRY(read_sources(context, &sources, err));
        DL_TRY(cite_answer(context, options, &sources, err));
        for (int k = 0; k < sources.count; k++)
            if (sources.cited[k]) add_entry(&out, sources.keys[k], sources.texts[k]);
    }
    return context->output(options, dl_text_string(&out), err);
}

const struct dl_command dl_cmd_cite = {
    .name = "cite",
    .summary = "BibTeX of this program and of the sources of an answer or of tables",
    .usage = "[options] | TABLE.csv...",
    .purpose =
        "Prints how to cite dlmodel. With options of predict, also the sources of the numbers in "
        "the files that the answer is made from (system, device, network, framework; "
        "data/SOURCES.md says what each key stands for). With tables of measurements, the sources "
        "of their rows.",
    .examples = examples,
    .options = tables,
    .run = run,
};
