/* fuzz_toml.c - libFuzzer entry for torchtitan's configurations: entries have unique paths and a
 * place, and what is accepted makes a plan or an error with a reason. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/text.h"
#include "import/import_plan.h"
#include "import/toml.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_BY_PIECES("=,[] \n")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_toml toml;
    struct dl_text workload = {.arena = &arena};
    struct dl_plan_words words = {.arena = &arena, .workload = &workload};
    const char *const *ignored;

    if (dl_toml_parse("input", (const char *)data, size, &arena, &toml, &err) == DL_OK) {
        for (int i = 0; i < toml.count; i++) {
            const struct dl_toml_entry *e = &toml.entries[i];
            if (e->text == NULL || e->line < 1 || dl_toml_find(&toml, e->path) != e) abort();
        }
        if (dl_torchtitan_plan(&toml, 16, &ignored, &words, &err) == DL_OK) {
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
