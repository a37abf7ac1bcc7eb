/* measured_runs.c - watches the folder into which `dlmodel slurm collect` writes. */
#include "serve/measured_runs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "import/log.h"
#include "model/core/csv.h"
#include "model/core/file.h"
#include "model/core/hash.h"
#include "model/core/text.h"
#include "predict/compare/compare_runs.h"
#include "serve/run_command.h"
#include "serve/serve.h"

enum {
    MAX_TABLES = 256,
    MAX_COLUMNS = 256,
    MAX_RUNS = 2000, /* of all tables: correcting by them takes half a millisecond a run */
    MAX_BYTES = 4 << 20
};

/* Tables as this worker read them last. */
static struct {
    uint64_t state; /* hash of the files' names, sizes and times */
    char *text;     /* all usable tables as one; "" for none */
    char *left_out; /* "bad.csv: what was expected", one a line; "" for none */
} kept;

static bool is_table(const char *name) { return name[0] != '.' && dl_ends_in(name, ".csv"); }

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the folder's tables, sorted; *count_out may exceed MAX_TABLES. */
static const char **find_tables(const char *folder, struct dl_arena *arena, int *count_out) {
    const char **names = dl_arena_alloc(arena, MAX_TABLES, sizeof *names);
    DIR *directory = opendir(folder);
    int count = 0;
    if (directory != NULL) {
        for (const struct dirent *e; (e = readdir(directory)) != NULL;) {
            if (!is_table(e->d_name)) continue;
            if (count < MAX_TABLES) names[count] = dl_arena_strdup(arena, e->d_name);
            count++;
        }
        closedir(directory);
    }
    if (count > 0)
        qsort(names, (size_t)(count < MAX_TABLES ? count : MAX_TABLES), sizeof *names, by_name);
    *count_out = count;
    return names;
}

static uint64_t state_of(const char *folder, const char *const *names, int count,
                         struct dl_arena *arena) {
    uint64_t state = DL_HASH_START;
    for (int i = 0; i < count; i++) {
        struct stat s;
        const char *path = dl_arena_printf(arena, "%s/%s", folder, names[i]);
        if (stat(path, &s) != 0) continue;
        state = dl_hash_text(state, names[i]);
        state = dl_hash_bytes(state, &s.st_size, sizeof s.st_size);
        state = dl_hash_bytes(state, &s.st_mtim, sizeof s.st_mtim);
    }
    return state;
}

/* All tables joined; the columns are the union of theirs. */
struct joined {
    struct dl_arena *arena;
    const char *columns[MAX_COLUMNS];
    int column_count;
    struct dl_csv tables[MAX_TABLES];
    int table_count;
    int run_count;
    struct dl_text left_out;
};

static void leave_out(struct joined *j, const char *name, const struct dl_err *err) {
    dl_text_printf(&j->left_out, "%s: ", name);
    if (err->line > 0) dl_text_printf(&j->left_out, "line %d: ", err->line);
    if (err->key[0] != '\0') dl_text_printf(&j->left_out, "%s: ", err->key);
    dl_text_printf(&j->left_out, "%s\n", err->message);
}

static int column_of(const struct joined *j, const char *name) {
    for (int i = 0; i < j->column_count; i++)
        if (strcmp(j->columns[i], name) == 0) return i;
    return -1;
}

static enum dl_code add_columns(struct joined *j, const struct dl_csv *csv, struct dl_err *err) {
    for (int c = 0; c < csv->column_count; c++) {
        if (column_of(j, csv->header[c]) >= 0) continue;
        if (j->column_count == MAX_COLUMNS)
            return dl_fail(err, DL_ERR_INPUT, "expected at most %d columns in all tables",
                           MAX_COLUMNS);
        j->columns[j->column_count++] = csv->header[c];
    }
    return DL_OK;
}

/* Adds a table if `compare` accepts it; a table without rows is ignored. */
static enum dl_code add_table(const struct dl_service *service, const char *path, const char *name,
                              struct joined *j, struct dl_err *err) {
    struct dl_csv *csv = &j->tables[j->table_count];
    struct dl_run_rows *rows = dl_arena_alloc(j->arena, 1, sizeof *rows);
    char *text;
    size_t length;
    DL_TRY(dl_file_read_regular(path, MAX_BYTES, j->arena, &text, &length, err));
    if (length == 0) return DL_OK;
    DL_TRY(dl_csv_parse(name, text, length, j->arena, csv, err));
    if (csv->row_count == 0) return DL_OK;
    if (j->run_count + csv->row_count > MAX_RUNS)
        return dl_fail(err, DL_ERR_INPUT, "expected at most %d runs in all tables", MAX_RUNS);
    DL_TRY(dl_run_rows_read(&service->context->data, csv, j->arena, rows, err));
    DL_TRY(add_columns(j, csv, err));
    j->run_count += csv->row_count;
    j->table_count++;
    return DL_OK;
}

static void add_cell(struct dl_text *out, const char *text, bool first) {
    if (!first) dl_text_add(out, ",");
    dl_log_cell(out, text);
}

static const char *joined_text(const struct joined *j) {
    struct dl_text out = {.arena = j->arena};
    if (j->table_count == 0) return "";
    for (int c = 0; c < j->column_count; c++) add_cell(&out, j->columns[c], c == 0);
    dl_text_add(&out, "\n");
    for (int t = 0; t < j->table_count; t++) {
        const struct dl_csv *csv = &j->tables[t];
        for (int r = 0; r < csv->row_count; r++) {
            for (int c = 0; c < j->column_count; c++) {
                const int own = dl_csv_column(csv, j->columns[c]);
                add_cell(&out, own < 0 ? "" : csv->rows[r][own], c == 0);
            }
            dl_text_add(&out, "\n");
        }
    }
    return dl_text_string(&out);
}

static char *copy(const char *text) { return strdup(text != NULL ? text : ""); }

static void read_tables(const struct dl_service *service, const char *const *names, int count,
                        struct dl_arena *arena) {
    struct joined *j = dl_arena_alloc(arena, 1, sizeof *j);
    j->arena = arena;
    j->left_out.arena = arena;
    for (int i = 0; i < count && i < MAX_TABLES; i++) {
        struct dl_err err = {.code = DL_OK};
        const char *path = dl_arena_printf(arena, "%s/%s", service->config->measured, names[i]);
        if (add_table(service, path, names[i], j, &err) != DL_OK) leave_out(j, names[i], &err);
    }
    if (count > MAX_TABLES)
        dl_text_printf(&j->left_out, "%d tables: expected at most %d in the folder\n",
                       count - MAX_TABLES, MAX_TABLES);
    free(kept.text);
    free(kept.left_out);
    kept.text = copy(joined_text(j));
    kept.left_out = copy(j->left_out.length > 0 ? dl_text_string(&j->left_out) : "");
}

/* Updates `kept`; false: the folder has no table. */
static bool update(const struct dl_service *service) {
    const char *folder = service->config->measured;
    struct dl_arena arena = {0};
    int count = 0;
    if (folder == NULL) return false;
    const char **names = find_tables(folder, &arena, &count);
    const int read = count < MAX_TABLES ? count : MAX_TABLES;
    const uint64_t state = state_of(folder, names, read, &arena) + (uint64_t)count;
    if (state != kept.state || kept.text == NULL) read_tables(service, names, count, &arena);
    kept.state = state;
    dl_arena_free(&arena);
    return kept.text != NULL && kept.left_out != NULL &&
           (kept.text[0] != '\0' || kept.left_out[0] != '\0');
}

enum dl_code dl_measured_attach(const struct dl_service *service, struct dl_words *words,
                                struct dl_arena *arena, const char **name, struct dl_err *err) {
    *name = NULL;
    if (!update(service)) return DL_OK;
    DL_TRY(dl_words_attach(words, "measured runs", kept.text, strlen(kept.text), arena, name, err));
    struct dl_attachment *own = &words->attached[words->attached_count - 1];
    own->if_it_fits = true;
    if (kept.left_out[0] != '\0') {
        char *list = dl_arena_strndup(arena, kept.left_out, strlen(kept.left_out) - 1);
        for (char *c = list; *c != '\0'; c++) *c = *c == '\n' ? ';' : *c;
        own->remark = dl_arena_printf(arena, "measured runs left out: %s", list);
    }
    return DL_OK;
}

/* Inserts "left_out" as the first member of compare's JSON. */
static const char *with_left_out(const char *json, struct dl_arena *arena) {
    struct dl_json_writer w;
    dl_jw_init(&w, arena, false);
    dl_jw_object(&w, NULL);
    dl_jw_array(&w, "left_out");
    for (const char *line = kept.left_out; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        dl_jw_string(&w, NULL, dl_arena_strndup(arena, line, length));
        line += length + 1;
    }
    dl_jw_end(&w);
    if (json == NULL) {
        dl_jw_array(&w, "rows");
        dl_jw_end(&w);
    }
    dl_jw_end(&w);
    if (json == NULL) return dl_arena_printf(arena, "%s\n", w.text);
    const size_t end = strlen(w.text) - strlen("\n}");
    return dl_arena_printf(arena, "%.*s,%s", (int)end, w.text, json + 1);
}

/* GET /v1/measured: the output of `dlmodel compare` for the tables: each run with its prediction
 * and, where it is slower, the likely cause; and the tables that could not be used. */
void dl_answer_measured(const struct dl_service *service, const struct dl_request *request,
                        struct dl_arena *arena, struct dl_answer *out) {
    struct dl_words *words = dl_arena_alloc(arena, 1, sizeof *words);
    struct dl_ran ran = {.code = DL_OK};
    const char *name = NULL;
    ran.code = dl_measured_attach(service, words, arena, &name, &ran.err);
    if (ran.code == DL_OK && (name == NULL || kept.text[0] == '\0')) {
        const char *nothing = "{\n  \"left_out\": [],\n  \"rows\": []\n}\n";
        dl_answer_text(200, DL_MEDIA_JSON, name == NULL ? nothing : with_left_out(NULL, arena),
                       out);
        return;
    }
    if (ran.code == DL_OK) ran.code = dl_words_add(words, dl_arena_strdup(arena, name), &ran.err);
    if (ran.code == DL_OK)
        ran.code = dl_words_add(words, dl_arena_strdup(arena, "--json"), &ran.err);
    if (ran.code == DL_OK)
        dl_run_command(service, dl_service_command(service, "compare"), words, request, arena,
                       &ran);
    if (ran.text != NULL && ran.text[0] == '{') ran.text = with_left_out(ran.text, arena);
    dl_answer_ran(&ran, DL_MEDIA_JSON, arena, out);
}
