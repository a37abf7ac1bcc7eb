/* fuzz_toml.c - libFuzzer entry for torchtitan's configurations: entries have unique paths and a
 * place, and what is accepted makes a plan or an error with a reason. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "import/run/imported_run.h"
#include "import/run/toml.h"
#include "model/core/text.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_BY_PIECES("=,[] \n")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_text workload = {.arena = &arena};
    struct dl_plan_words words = {.arena = &arena, .kind = "torchtitan", .workload = &workload};
    struct dl_run run = {
        .out = &words, .err = &err, .vocabulary = NAN, .nodes = NAN, .per_node = NAN, .ranks = 16};
    struct dl_arguments *a = &run.arguments;

    dl_arguments_start(a, "input", &arena);
    if (dl_toml_read((const char *)data, size, a, &err) == DL_OK) {
        for (int i = 0; i < a->count; i++) {
            if (a->all[i].value == NULL || a->all[i].line < 1) abort();
            for (int k = 0; k < i && a->count < 100; k++)
                if (strcmp(a->all[i].name, a->all[k].name) == 0) abort();
        }
        if (dl_torchtitan_plan(&run) == DL_OK) {
            if (words.option_count < 1 || dl_text_string(&workload)[0] == '\0') abort();
        } else if (err.message[0] == '\0') {
            abort();
        }
    } else if (err.code == DL_OK || err.message[0] == '\0') {
        abort();
    }
    dl_arena_free(&arena);
    return 0;
}
