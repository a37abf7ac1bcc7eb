/* plot_render.c - runs gnuplot on a figure, without a shell and without named temporary files.
 *
 * gnuplot reads the numbers from its standard input as a data block, gets texts as quoted
 * variables (-e), and writes the picture to its standard output. Its input is an unnamed file, so
 * that nothing is left behind when the program is killed. */
#include "plots/figures/plot.h"
#include "model/core/json_node.h"
#include "process/child.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char *const dl_plot_formats[] = {"png", "svg", "pdf", "eps", "terminal", NULL};

/* Text quoted for gnuplot, between `mark`s: a mark inside is doubled (gnuplot's single quotes)
 * or replaced (its data files know no escape); control characters and broken UTF-8 become '?'. */
static const char *quoted(struct dl_arena *arena, const char *text, char mark) {
    char *out = dl_arena_alloc(arena, 2 * strlen(text) + 3, 1);
    size_t n = 0;
    out[n++] = mark;
    for (const unsigned char *s = (const unsigned char *)text; *s != 0;) {
        const int length = (int)dl_utf8_bytes((const char *)s, strnlen((const char *)s, 4));
        if (length == 0 || *s < 0x20 || *s == 0x7F)
            out[n++] = '?';
        else if (*s == '"' && mark == '"')
            out[n++] = '\'';
        else
            for (int i = 0; i < length; i++) out[n++] = (char)s[i];
        if (*s == '\'' && mark == '\'') out[n++] = '\'';
        s += length > 0 ? length : 1;
    }
    out[n++] = mark;
    return out;
}

/* gnuplot interprets the label of a tic as a number format, in which a percent sign must be
 * doubled. */
static const char *tic_label(struct dl_arena *arena, const char *text) {
    char *out = text == NULL ? NULL : dl_arena_alloc(arena, 2 * strlen(text) + 1, 1);
    if (out == NULL) return NULL;
    for (size_t n = 0; *text != 0; text++) {
        out[n++] = *text;
        if (*text == '%') out[n++] = '%';
    }
    return out;
}

/* Texts of the data are used as labels of tics only. */
static bool write_cell(FILE *file, struct dl_arena *arena, const struct dl_column *column,
                       const union dl_cell *cell) {
    switch (column->type) {
    case DL_COLUMN_STRING: {
        const char *text =
            tic_label(arena, quoted(arena, cell->string == NULL ? "" : cell->string, '"'));
        return text != NULL && fputs(text, file) >= 0;
    }
    case DL_COLUMN_NUMBER:
        return isfinite(cell->number) ? fprintf(file, "%.9g", cell->number) > 0
                                      : fputs("NaN", file) >= 0;
    case DL_COLUMN_INTEGER:
        return cell->integer == DL_ABSENT ? fputs("NaN", file) >= 0
                                          : fprintf(file, "%" PRId64, cell->integer) > 0;
    case DL_COLUMN_BOOL: return fputs(cell->boolean ? "1" : "0", file) >= 0;
    }
    return false;
}

/* The table as a data block; two empty lines between groups, so that a script takes a group with
 * `index`. */
static bool write_data(FILE *file, struct dl_arena *arena, const struct dl_table *table) {
    bool good = fputs("$data << DL_END_OF_DATA\n", file) >= 0;
    for (int r = 0; r < table->row_count && good; r++) {
        const union dl_cell *cells = dl_table_cells(table, r);
        if (r > 0 && cells[0].integer != cells[-table->column_count].integer)
            good = fputs("\n\n", file) >= 0;
        for (int c = 0; c < table->column_count && good; c++) {
            good = (c == 0 || fputc(',', file) != EOF) &&
                   write_cell(file, arena, &table->columns[c], &cells[c]);
        }
        good = good && fputc('\n', file) != EOF;
    }
    return good && fputs("DL_END_OF_DATA\n", file) >= 0 && fflush(file) == 0;
}

/* A file without a name, in $TMPDIR or /tmp. */
static FILE *nameless_file(void) {
    const char *directory = getenv("TMPDIR");
    char name[1024];
    for (int attempt = directory != NULL && directory[0] == '/' ? 0 : 1; attempt < 2; attempt++) {
        const int length =
            snprintf(name, sizeof name, "%s/dlmodel-XXXXXX", attempt == 0 ? directory : "/tmp");
        if (length < 0 || (size_t)length >= sizeof name) continue;
        const int fd = mkstemp(name);
        if (fd < 0) continue;
        unlink(name);
        FILE *file = fdopen(fd, "w+");
        if (file == NULL) close(fd);
        return file;
    }
    return NULL;
}

/* gnuplot runs what it reads, so a data folder provides no scripts. */
static const char *script_path(struct dl_context *context, const char *name) {
    for (int i = 0; i < context->script_root_count; i++) {
        const char *path =
            dl_arena_printf(context->arena, "%s/plots/%s.gp", context->script_roots[i], name);
        /* gnuplot takes "-..." for an option and "<..." for a command to run */
        if (path != NULL && path[0] != '/') path = dl_arena_printf(context->arena, "./%s", path);
        if (path != NULL && access(path, R_OK) == 0) return path;
    }
    return NULL;
}

static int64_t window(const char *variable, int64_t own, int64_t fallback, int64_t least,
                      int64_t most) {
    const char *text = getenv(variable);
    int64_t value = own > 0 ? own : text != NULL && atoi(text) > 0 ? atoi(text) : fallback;
    return value < least ? least : value > most ? most : value;
}

/* One line less than the window, so that the prompt after it does not push the title out. */
static void canvas_size(int64_t *columns, int64_t *lines) {
    struct winsize size = {0};
    const bool terminal = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *columns = window("COLUMNS", terminal ? size.ws_col : 0, 100, 60, 240);
    *lines = window("LINES", terminal && size.ws_row > 1 ? size.ws_row - 1 : 0, 30, 20, 60);
}

enum { HEADING_LINES = 8 };

struct arguments {
    const char *words[64];
    int count;
    bool failed;
};

static void add(struct arguments *a, const char *word) {
    if (word == NULL || a->count == 63)
        a->failed = true;
    else
        a->words[a->count++] = word;
}

static void set(struct arguments *a, struct dl_arena *arena, const char *name, const char *value) {
    add(a, "-e");
    add(a, value == NULL ? NULL : dl_arena_printf(arena, "%s=%s", name, value));
}

static void set_array(struct arguments *a, struct dl_arena *arena, const char *name,
                      const char *const *texts, int count) {
    const char *list = "";
    for (int i = 0; i < count && list != NULL; i++) {
        const char *text = quoted(arena, texts[i] == NULL ? "" : texts[i], '\'');
        list = text == NULL ? NULL : dl_arena_printf(arena, "%s%s%s", list, i > 0 ? "," : "", text);
    }
    add(a, "-e");
    add(a, list == NULL ? NULL : dl_arena_printf(arena, "array %s[%d]=[%s]", name, count, list));
}

static int width_of(const struct dl_figure *figure) {
    return figure->width > 0 ? figure->width : 800;
}

/* Breaks a text at blanks into lines of at most so many letters; gnuplot's own words drop quotes.
 */
static void add_lines(struct dl_arena *arena, const char *text, int most, const char **lines,
                      int *count) {
    while (text != NULL && *text != 0 && *count < HEADING_LINES) {
        size_t bytes = 0, end = 0;
        for (int letters = 0; text[bytes] != 0 && letters <= most; letters++) {
            if (text[bytes] == ' ') end = bytes;
            const int length = (int)dl_utf8_bytes(text + bytes, strnlen(text + bytes, 4));
            bytes += length > 0 ? (size_t)length : 1;
        }
        if (text[bytes] == 0 || end == 0 || *count == HEADING_LINES - 1) end = strlen(text);
        lines[(*count)++] = dl_arena_strndup(arena, text, end);
        text += end + (text[end] == ' ');
    }
}

static void set_heading(struct arguments *a, struct dl_arena *arena, const struct dl_figure *figure,
                        enum dl_plot_format format) {
    /* pixels of a letter, on average: letter_px of style.gp */
    const double letter_px = 0.92 * (format == DL_PLOT_SVG   ? 8.2
                                     : format == DL_PLOT_PNG ? 9.2
                                                             : 8.7);
    const int most = format == DL_PLOT_TERMINAL ? 1000 : (int)((width_of(figure) - 20) / letter_px);
    const char *lines[HEADING_LINES] = {""};
    int count = 0;
    add_lines(arena, figure->title, most, lines, &count);
    add_lines(arena, figure->subtitle, most, lines, &count);
    set_array(a, arena, "heading_lines", lines, count > 0 ? count : 1);
}

static void describe(struct arguments *a, const struct dl_context *context,
                     const struct dl_figure *figure, enum dl_plot_format format) {
    struct dl_arena *arena = context->arena;
    int64_t columns, lines;
    canvas_size(&columns, &lines);
    set(a, arena, "data", "'$data'");
    set(a, arena, "format", quoted(arena, dl_plot_formats[format], '\''));
    set(a, arena, "columns", dl_arena_printf(arena, "%" PRId64, columns));
    set(a, arena, "lines", dl_arena_printf(arena, "%" PRId64, lines));
    set(a, arena, "wide", dl_arena_printf(arena, "%d", width_of(figure)));
    set(a, arena, "high", dl_arena_printf(arena, "%d", figure->height > 0 ? figure->height : 540));
    set(a, arena, "color", context->color ? "1" : "0");
    set_heading(a, arena, figure, format);
    set(a, arena, "groups", dl_arena_printf(arena, "%d", figure->group_count));
    set_array(a, arena, "labels", figure->labels, figure->group_count);
    int notes = figure->group_count; /* at least; a figure may have notes on other things */
    while (notes < DL_PLOT_GROUPS && figure->notes[notes] != NULL) notes++;
    set_array(a, arena, "notes", figure->notes, notes);
    for (const struct dl_plot_parameter *p = figure->parameters; p->name != NULL; p++) {
        set(a, arena, p->name,
            p->text != NULL ? quoted(arena, p->text, '\'')
                            : dl_arena_printf(arena, "%.9g", p->number));
    }
}

/* A figure takes well below a second; without an end the command would wait forever. */
enum { GNUPLOT_LIMIT_S = 60 };

/* Whether these are the first bytes of such a file: what else gnuplot may have printed is no
 * figure. */
static bool is_figure(enum dl_plot_format format, const char *bytes, size_t length) {
    static const char *const starts[] = {[DL_PLOT_PNG] = "\x89PNG\r\n",
                                         [DL_PLOT_SVG] = "<?xml",
                                         [DL_PLOT_PDF] = "%PDF-",
                                         [DL_PLOT_EPS] = "%!PS-Adobe"};
    if (format == DL_PLOT_TERMINAL) return length > 0;
    const size_t start = strlen(starts[format]);
    return length > start && memcmp(bytes, starts[format], start) == 0;
}

static enum dl_code run_gnuplot(const struct arguments *a, FILE *in, struct dl_child_text *out,
                                struct dl_child_ending *ending, struct dl_err *err) {
    const struct dl_child child = {.argv = a->words,
                                   .input_fd = fileno(in),
                                   .output = dl_child_collect,
                                   .context = out,
                                   .limit_s = GNUPLOT_LIMIT_S};
    DL_TRY(dl_child_run(&child, ending, err));
    if (ending->cut != DL_CHILD_WHOLE)
        return dl_fail(err, DL_ERR_SYSTEM, "gnuplot was ended: it did not finish in %d s",
                       GNUPLOT_LIMIT_S);
    if (ending->exit_status == 127)
        return dl_fail(
            err, DL_ERR_SYSTEM,
            "gnuplot is needed to draw and was not found: 'make deps' or 'apt-get install "
            "gnuplot-nox' installs it; plot --csv prints the numbers without it, report "
            "--no-figures does without");
    return DL_OK;
}

/* The first line with an error message of gnuplot, which prints the offending line and a caret
 * before it. */
static const char *complaint(char *messages) {
    char *text = messages;
    for (char *line = messages; *line != 0;) {
        const size_t length = strcspn(line, "\n");
        char *next = line + length + (line[length] != 0);
        line[length] = 0;
        line += strspn(line, " \t^");
        if (line[0] != 0) text = line;
        if (strstr(line, "line ") != NULL) break;
        line = next;
    }
    return text[0] != 0 ? text : "it gave no reason";
}

static void draw_blocks(struct dl_context *context, const struct dl_figure *figure,
                        struct dl_plot_file *out) {
    int64_t columns, lines;
    canvas_size(&columns, &lines);
    struct dl_arena *arena = context->arena;
    const char *text;
    if (figure->curves.x_name != NULL)
        text = dl_plot_canvas_text(figure, (int)columns, (int)lines, context->color, arena);
    else if (figure->strips != NULL)
        text = dl_plot_strips_text(figure, (int)columns, context->color, arena);
    else
        text = dl_plot_blocks_text(figure, (int)columns, context->color, arena);
    out->bytes = dl_arena_strdup(context->arena, text);
    out->length = strlen(out->bytes);
}

static enum dl_code draw_gnuplot(struct dl_context *context, const struct dl_figure *figure,
                                 const char *script, enum dl_plot_format format,
                                 struct dl_plot_file *out, struct dl_err *err) {
    const char *style = script_path(context, "style"), *path = script_path(context, script);
    if (style == NULL || path == NULL) {
        return dl_fail(
            err, DL_ERR_SYSTEM,
            "plots/%s.gp is neither next to the program nor installed; reinstall dlmodel",
            style == NULL ? "style" : script);
    }
    struct arguments a = {.count = 0};
    add(&a, "gnuplot");
    add(&a, "-d"); /* not the user's own settings */
    describe(&a, context, figure, format);
    add(&a, "/dev/stdin");
    add(&a, style);
    add(&a, path);
    struct dl_child_text text = {.arena = context->arena};
    struct dl_child_ending ending;
    FILE *in = nameless_file();
    enum dl_code code = DL_OK;
    if (in == NULL || !write_data(in, context->arena, &figure->table))
        code = dl_fail(err, DL_ERR_SYSTEM, "cannot write a temporary file in $TMPDIR or /tmp: %s",
                       strerror(errno));
    if (code == DL_OK) rewind(in);
    if (code == DL_OK) code = run_gnuplot(&a, in, &text, &ending, err);
    if (in != NULL) fclose(in);
    DL_TRY(code);
    out->bytes = text.bytes;
    out->length = text.length;
    char *messages = ending.last_words;
    if (ending.exit_status != 0 || out->length == 0)
        return dl_fail(err, DL_ERR_SYSTEM, "gnuplot failed: %s", complaint(messages));
    if (!is_figure(format, out->bytes, out->length))
        return dl_fail(err, DL_ERR_SYSTEM, "gnuplot printed something that is no %s file",
                       dl_plot_formats[format]);
    /* It also warns of a sign that no figure has (locale C), and of a series that has no value
     * here, such as measured points of a prediction. */
    if (strstr(messages, "warning:") != NULL && strstr(messages, "degree sign") == NULL &&
        strstr(messages, "no valid points") == NULL)
        context->note(context, "gnuplot: %s", complaint(messages));
    return DL_OK;
}

enum dl_code dl_plot_render(struct dl_context *context, const struct dl_figure *figure,
                            const char *script, enum dl_plot_format format,
                            struct dl_plot_file *out, struct dl_err *err) {
    if (format == DL_PLOT_TERMINAL && dl_plot_blocks_wanted(figure)) {
        draw_blocks(context, figure, out);
        return DL_OK;
    }
    return draw_gnuplot(context, figure, figure->script != NULL ? figure->script : script, format,
                        out, err);
}
