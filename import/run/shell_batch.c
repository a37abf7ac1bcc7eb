/* shell_batch.c - environment variables that Slurm sets in a job, from the options of sbatch. */
#include <stdlib.h>
#include <string.h>

#include "import/run/shell_internal.h"

static const struct option {
    const char *names, *variables; /* variables that a job has then */
} options[] = {
    {"--nodes -N", "SLURM_NNODES SLURM_JOB_NUM_NODES"},
    {"--ntasks -n", "SLURM_NTASKS SLURM_NPROCS"},
    {"--ntasks-per-node", "SLURM_NTASKS_PER_NODE"},
    {"--gpus-per-node --gres", "SLURM_GPUS_PER_NODE SLURM_GPUS_ON_NODE"},
    {"--gpus -G", "SLURM_GPUS"},
    {"--gpus-per-task", "SLURM_GPUS_PER_TASK"},
};

/* The number of "gpu:a100:8", "8" and "4-8". */
static const char *number_of(struct dl_arena *arena, const char *value) {
    const char *colon = strrchr(value, ':'), *from = colon != NULL ? colon + 1 : value;
    const size_t digits = strspn(from, "0123456789");
    return digits > 0 ? dl_arena_strndup(arena, from, digits) : value;
}

static void set(struct dl_shell *shell, const char *name, const char *value) {
    size_t length;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (!dl_has_word(options[i].names, name)) continue;
        if (strcmp(name, "--gres") == 0 && strncmp(value, "gpu", 3) != 0) return;
        for (const char *rest = options[i].variables, *variable;
             (variable = dl_word_next(&rest, " ", &length)) != NULL;)
            dl_shell_set(shell, dl_arena_strndup(shell->arena, variable, length),
                         number_of(shell->arena, value));
    }
}

void dl_shell_batch(struct dl_shell *shell, const struct dl_shell_list *words) {
    for (int i = 0; i < words->count; i++) {
        const char *word = words->texts[i], *equals = strchr(word, '=');
        if (word[0] != '-') continue;
        if (equals != NULL)
            set(shell, dl_arena_strndup(shell->arena, word, (size_t)(equals - word)), equals + 1);
        else if (word[1] != '-' && strlen(word) > 2) /* -N4 */
            set(shell, dl_arena_strndup(shell->arena, word, 2), word + 2);
        else if (i + 1 < words->count)
            set(shell, word, words->texts[i + 1]);
    }
}

void dl_shell_batch_lines(struct dl_shell *shell, const char *text, size_t length) {
    static const char mark[] = "#SBATCH";
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *at = line;
        if (stop == NULL) stop = end;
        if ((size_t)(stop - line) > sizeof mark - 1 && strncmp(line, mark, sizeof mark - 1) == 0) {
            struct dl_shell_list words = {NULL, 0};
            for (at += sizeof mark - 1; at < stop && *at != '#';) {
                const char *from = at;
                while (at < stop && strchr(" \t\r", *at) == NULL) at++;
                if (at > from)
                    dl_shell_push(shell->arena, &words,
                                  dl_arena_strndup(shell->arena, from, (size_t)(at - from)));
                while (at < stop && strchr(" \t\r", *at) != NULL) at++;
            }
            dl_shell_batch(shell, &words);
        }
        line = stop + 1;
    }
}
