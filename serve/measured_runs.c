/* measured_runs.c - watches the folder into which `dlmodel slurm collect` writes. */
#include "serve/measured_runs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model/core/hash.h"
#include "model/core/file.h"
#include "model/core/text.h"
#include "serve/run_command.h"
#include "serve/serve.h"

enum { MOST_TABLES = 256, MOST_TABLE_BYTES = 16 << 20 };

/* What this worker read last. */
static struct {
    uint64_t state; /* of names, sizes and times of the files */
    int used;
    char *text;
    size_t bytes;
} kept;

static bool is_table(const char *name) {
    const size_t length = strlen(name);
    return name[0] != '.' && length > 4 && strcmp(name + length - 4, ".csv") == 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Paths of the tables, by name; their count. */
static int find_tables(const char *folder, const char **paths, struct dl_arena *arena) {
    DIR *directory = opendir(folder);
    int count = 0;
    if (directory == NULL) return 0;
    for (const struct dirent *e; count < MOST_TABLES && (e = readdir(directory)) != NULL;) {
        const char *path =
            is_table(e->d_name) ? dl_arena_printf(arena, "%s/%s", folder, e->d_name) : NULL;
        if (path != NULL) paths[count++] = path;
    }
    closedir(directory);
    qsort(paths, (size_t)count, sizeof *paths, by_name);
    return count;
}

static uint64_t state_of(const char *const *paths, int count) {
    uint64_t state = DL_HASH_START;
    for (int i = 0; i < count; i++) {
        struct stat s;
        if (stat(paths[i], &s) != 0) continue;
        state = dl_hash_text(state, paths[i]);
        state = dl_hash_bytes(state, &s.st_size, sizeof s.st_size);
        state = dl_hash_bytes(state, &s.st_mtim, sizeof s.st_mtim);
    }
    return state;
}

static void join(const char *const *paths, int count, struct dl_arena *arena, struct dl_text *out) {
    const char *header = NULL;
    size_t header_length = 0;
    kept.used = 0;
    for (int i = 0; i < count; i++) {
        struct dl_err ignored = {0};
        char *text;
        size_t length;
        if (dl_file_read(paths[i], MOST_TABLE_BYTES, arena, &text, &length, &ignored) != DL_OK)
            continue;
        const size_t line = strcspn(text, "\r\n");
        if (line == length || line == 0) continue; /* no rows yet */
        if (header == NULL) {
            header = text;
            header_length = line;
            dl_text_printf(out, "%.*s\n", (int)line, text);
        } else if (line != header_length || strncmp(header, text, line) != 0) {
            continue;
        }
        kept.used++;
        dl_text_add(out, text + line + strspn(text + line, "\r\n"));
        if (length > 0 && text[length - 1] != '\n') dl_text_add(out, "\n");
    }
}

const char *dl_measured_table(const struct dl_service *service, size_t *bytes) {
    const char *paths[MOST_TABLES];
    struct dl_arena arena = {0};
    *bytes = 0;
    if (service->config->measured == NULL) return NULL;
    const int count = find_tables(service->config->measured, paths, &arena);
    const uint64_t state = state_of(paths, count);
    if (state != kept.state) {
        struct dl_text text = {.arena = &arena};
        join(paths, count, &arena, &text);
        const char *all = dl_text_string(&text);
        free(kept.text);
        kept.text = all == NULL ? NULL : strdup(all);
        kept.bytes = text.length;
        kept.state = state;
    }
    dl_arena_free(&arena);
    *bytes = kept.bytes;
    return kept.used > 0 ? kept.text : NULL;
}

enum dl_code dl_measured_attach(const struct dl_service *service, struct dl_words *words,
                                struct dl_arena *arena, const char **name, struct dl_err *err) {
    size_t bytes;
    const char *text = dl_measured_table(service, &bytes);
    *name = NULL;
    if (text == NULL) return DL_OK;
    DL_TRY(dl_words_attach(words, "measured runs", text, bytes, arena, name, err));
    words->attached[words->attached_count - 1].if_it_fits = true;
    return DL_OK;
}

/* GET /v1/measured: what `dlmodel compare` says of the tables: each run beside its prediction, with
 * the likely cause where it is slower. */
void dl_answer_measured(const struct dl_service *service, const struct dl_request *request,
                        struct dl_arena *arena, struct dl_answer *out) {
    struct dl_words *words = dl_arena_alloc(arena, 1, sizeof *words);
    struct dl_ran ran = {.code = DL_OK};
    const char *name = NULL;
    if (words == NULL) {
        dl_answer_text(500, DL_MEDIA_PROBLEM, NULL, out);
        return;
    }
    ran.code = dl_measured_attach(service, words, arena, &name, &ran.err);
    if (ran.code == DL_OK && name == NULL) { /* nothing measured is an answer too */
        dl_answer_text(200, DL_MEDIA_JSON, "{\n  \"rows\": []\n}\n", out);
        return;
    }
    if (ran.code == DL_OK) ran.code = dl_words_add(words, dl_arena_strdup(arena, name), &ran.err);
    if (ran.code == DL_OK)
        ran.code = dl_words_add(words, dl_arena_strdup(arena, "--json"), &ran.err);
    if (ran.code == DL_OK)
        dl_run_command(service, dl_service_command(service, "compare"), words, request, arena,
                       &ran);
    dl_answer_ran(service, &ran, DL_MEDIA_JSON, arena, out);
}
