/* fuzz_arguments.c - libFuzzer entry for arguments of Megatron and NeMo: the first byte says which.
 * Names are unique; what is accepted makes a plan or an error with a reason. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/text.h"
#include "import/import_plan.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_BY_PIECES("=: \n")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_arguments a;
    struct dl_text workload = {.arena = &arena};
    struct dl_plan_words words = {.arena = &arena, .workload = &workload};

    if (size == 0) return 0;
    if ((data[0] == 'y' ? dl_arguments_yaml : dl_arguments_shell)(
            "input", (const char *)data + 1, size - 1, &arena, &a, &err) == DL_OK) {
        for (int i = 0; i < a.count; i++) {
            for (int k = 0; k < i; k++)
                if (strcmp(a.all[i].name, a.all[k].name) == 0) abort();
            if (a.all[i].line < 1) abort();
        }
        if (dl_megatron_plan(&a, size % 2 == 0 ? 16 : 0, &words, &err) == DL_OK) {
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
