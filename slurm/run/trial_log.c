/* trial_log.c - see the header. */
#include "slurm/run/trial_log.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "model/core/file.h"

#define TIME(member, text)                                                                         \
    DL_FIELD(struct dl_trial_line, member, NUMBER, DL_RANGE(0, 1e11, DL_UNIT_S), .help = text)
#define MAP(member, count, text)                                                                   \
    DL_FIELD(struct dl_trial_line, member, MAP,                                                    \
             .count_offset = offsetof(struct dl_trial_line, count), .help = text)

static const struct dl_field fields[] = {
    DL_FIELD(struct dl_trial_line, event, STRING, .required = true, .help = "trial or fail"),
    DL_FIELD(struct dl_trial_line, trial, INTEGER, DL_RANGE(0, 1e9, DL_UNIT_COUNT),
             .required = true, .help = "its number in campaign.json"),
    DL_FIELD(struct dl_trial_line, batch, INTEGER, DL_RANGE(1, 1e9, DL_UNIT_COUNT),
             .help = "samples per iteration"),
    TIME(asked_s, "Slurm was asked for the trial: seconds since 1970"),
    TIME(train_s, "the first iteration began"),
    TIME(trained_s, "the last one ended"),
    TIME(end_s, "the program ended"),
    {.key = "loss",
     .type = DL_FIELD_NUMBER,
     .offset = offsetof(struct dl_trial_line, test_loss),
     DL_RANGE(-1e30, 1e30, DL_UNIT_NONE),
     .help = "of the test samples; absent: it diverged"},
    {.key = "accuracy",
     .type = DL_FIELD_NUMBER,
     .offset = offsetof(struct dl_trial_line, accuracy_frac),
     DL_RANGE(0, 1, DL_UNIT_NONE),
     .help = "of the test samples"},
    DL_FIELD(struct dl_trial_line, node, STRING, .help = "where it ran"),
    DL_FIELD(struct dl_trial_line, text, STRING, .help = "why it failed"),
    MAP(parameters, parameter_count, "hyper-parameters"),
    MAP(versions, version_count, "versions of the software"),
    {.key = NULL},
};
const struct dl_schema dl_trial_schema = {.name = "dlmodel-trial",
                                          .summary = "what one trial of a campaign reached",
                                          .size = sizeof(struct dl_trial_line),
                                          .fields = fields};

enum { MAX_BYTES = 1 << 20 };

/* The last whole line of a file; false: there is none. */
static bool read_one(const char *path, struct dl_arena *arena, struct dl_trial_line *out) {
    char *text = NULL;
    size_t length = 0;
    struct dl_err bad = {0};
    bool found = false;
    if (access(path, R_OK) != 0 ||
        dl_file_read(path, MAX_BYTES, arena, &text, &length, &bad) != DL_OK)
        return false;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        struct dl_json *doc = NULL;
        struct dl_trial_line read;
        if (dl_json_parse(path, line, strlen(line), arena, &doc, &bad) != DL_OK ||
            dl_json_load(doc, &dl_trial_schema, arena, &read, &bad) != DL_OK)
            continue;
        if (!dl_known(read.asked_s) || !dl_known(read.end_s)) continue;
        read.failed = strcmp(read.event, "trial") != 0;
        *out = read;
        found = true;
    }
    return found;
}

void dl_trials_read(const char *folder, int count, struct dl_arena *arena,
                    struct dl_trial_line **out, int *out_count) {
    *out = dl_arena_alloc(arena, (size_t)count, sizeof **out);
    *out_count = 0;
    for (int i = 0; i < count; i++) {
        const char *path = dl_arena_printf(arena, "%s/trials/trial-%d.jsonl", folder, i);
        if (read_one(path, arena, &(*out)[*out_count]) && (*out)[*out_count].trial == i)
            *out_count += 1;
    }
}
