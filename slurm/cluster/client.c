/* client.c - see the header. */
#include "slurm/cluster/client.h"

#include <string.h>

#include "process/child.h"

static const double LIMIT_S = 120;

/* Of what was said last. */
static const char *last_line(char *words) {
    size_t length = strlen(words);
    while (length > 0 && (words[length - 1] == '\n' || words[length - 1] == ' '))
        words[--length] = 0;
    const char *newline = strrchr(words, '\n');
    return newline == NULL ? words : newline + 1;
}

enum dl_code dl_client_run(const char *const *argv, struct dl_arena *arena, char **out,
                           struct dl_err *err) {
    struct dl_child_text text = {.arena = arena, .bytes = dl_arena_strdup(arena, "")};
    struct dl_child_ending ending;
    const struct dl_child child = {
        .argv = argv, .output = dl_child_collect, .context = &text, .limit_s = LIMIT_S};
    DL_TRY(dl_child_run(&child, &ending, err));
    if (ending.cut != DL_CHILD_WHOLE)
        return dl_fail(err, DL_ERR_BACKEND, "%s did not end within %.0f s", argv[0], LIMIT_S);
    if (ending.exit_status == 127)
        return dl_fail(err, DL_ERR_BACKEND,
                       "%s is not in PATH: is this a login node of a Slurm cluster?", argv[0]);
    const char *words = last_line(ending.last_words);
    if (ending.exit_status != 0)
        return dl_fail(err, DL_ERR_BACKEND, "%s failed: %s", argv[0],
                       *words != 0 ? words : "no message");
    *out = text.bytes;
    return DL_OK;
}
