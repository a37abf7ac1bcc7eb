/* fuzz_sacct.c - libFuzzer entry for what sacct and squeue print: jobs kept have a number and a
 * state of one word; times and energies are known or not. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/commands/slurm_internal.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_BY_PIECES("|\n")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { CAPACITY = 64 };
    struct dl_job_state jobs[CAPACITY];

    for (int accounting = 0; accounting < 2; accounting++) {
        struct dl_job_states states = {.jobs = jobs};
        char *text = malloc(size + 1);
        if (text == NULL) return 0;
        memcpy(text, data, size);
        text[size] = '\0';
        dl_slurm_take_lines(&states, CAPACITY, text, accounting != 0);
        if (states.count < 0 || states.count > CAPACITY) abort();
        for (int i = 0; i < states.count; i++) {
            if (jobs[i].job_id[0] == '\0' || strpbrk(jobs[i].job_id, "|\n") != NULL ||
                strpbrk(jobs[i].state, " +|\n") != NULL)
                abort();
            if (isinf(jobs[i].elapsed_s) || isinf(jobs[i].energy_j) || jobs[i].energy_j <= 0)
                abort();
        }
        free(text);
    }
    return 0;
}
