/* api_script.c - POST /v1/script: the job that `dlmodel slurm script` writes for the site. */
#include <string.h>
#include <unistd.h>

#include "serve/run_command.h"

/* Options that describe a run; the others belong to its submission. */
static const char *const taken[] = {"framework",
                                    "workload",
                                    "nodes",
                                    "devices-per-node",
                                    "batch-per-device",
                                    "global-batch",
                                    "precision",
                                    "optimizer",
                                    "steps",
                                    "time",
                                    "partition",
                                    "site",
                                    "input",
                                    "tp",
                                    "pp",
                                    NULL};

static bool takes(const char *name, size_t length) {
    for (int i = 0; taken[i] != NULL; i++) {
        if (strlen(taken[i]) == length && strncmp(taken[i], name, length) == 0) return true;
    }
    return false;
}

bool dl_script_takes(const char *option) { return takes(option, strlen(option)); }

static enum dl_code check(const struct dl_words *words, struct dl_err *err) {
    for (int i = 0; i < words->count; i++) {
        const char *name = words->list[i] + strspn(words->list[i], "-");
        const size_t length = strcspn(name, "=");
        if (!takes(name, length))
            return dl_fail_at(err, "request", 0, 0, NULL,
                              "%.*s: not an option of a run that a request may describe",
                              (int)length, name);
    }
    return DL_OK;
}

static enum dl_code read_words(const struct dl_command *command, const struct dl_request *request,
                               struct dl_arena *arena, struct dl_words *words, struct dl_err *err) {
    DL_TRY(dl_words_of_body(command, request->body, request->body_bytes, arena, words, err));
    DL_TRY(check(words, err));
    return dl_words_add(words, dl_arena_strdup(arena, "script"), err);
}

/* The run's folder is relative to the folder of submission, not to that of this process.
 */
static const char *from_submission(const char *script, struct dl_arena *arena) {
    char here[4096];
    const char *begin = script == NULL ? NULL : strstr(script, "\nrun='");
    if (begin == NULL || getcwd(here, sizeof here - 1) == NULL) return script;
    begin += strlen("\nrun=");
    strcat(here, "/");
    const size_t length = strlen(here);
    if (strncmp(begin + 1, here, length) != 0) return script; /* the site's own folder */
    return dl_arena_printf(arena, "%.*s\"${SLURM_SUBMIT_DIR:-.}\"'/%s", (int)(begin - script),
                           script, begin + 1 + length);
}

void dl_answer_script(const struct dl_service *service, const struct dl_request *request,
                      struct dl_arena *arena, struct dl_answer *out) {
    const struct dl_command *command = dl_service_command(service, "slurm");
    struct dl_words *words = dl_arena_alloc(arena, 1, sizeof *words);
    struct dl_ran *ran = dl_arena_alloc(arena, 1, sizeof *ran);
    ran->code = read_words(command, request, arena, words, &ran->err);
    if (ran->code == DL_OK) dl_run_command(service, command, words, request, arena, ran);
    ran->text = from_submission(ran->text, arena);
    dl_answer_ran(ran, DL_MEDIA_TEXT, arena, out);
}
