/* fuzz_arguments.c - libFuzzer entry for arguments of Megatron and NeMo: the first byte says
 * whether it is YAML, JSON or what a script or a log says. Names are unique; what is accepted
 * makes a plan or an error with a reason. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "import/run/imported_run.h"
#include "model/core/text.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_BY_PIECES("=: \n\"'$(){}[];")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_text workload = {.arena = &arena};
    struct dl_plan_words words = {.arena = &arena, .kind = "megatron", .workload = &workload};
    struct dl_context context = {.arena = &arena};
    struct dl_run run = {.out = &words,
                         .err = &err,
                         .vocabulary = NAN,
                         .nodes = NAN,
                         .per_node = NAN,
                         .ranks = size % 2 == 0 ? 16 : NAN};

    if (size == 0) return 0;
    const char *text = dl_arena_strndup(&arena, (const char *)data + 1, size - 1);
    const struct dl_run_source source = {
        .context = &context, .path = "input", .text = text, .length = strlen(text), .alone = true};
    dl_arguments_start(&run.arguments, "input", &arena);
    const enum dl_code code = data[0] == 'y'   ? dl_run_read_nemo(&source, &run)
                              : data[0] == 'j' ? dl_run_read_json(&source, &run)
                                               : dl_run_read_megatron(&source, &run);
    if (code == DL_OK) {
        const struct dl_arguments *a = &run.arguments;
        struct dl_argument_lists lists;
        for (int i = 0; i < a->count; i++) {
            for (int k = 0; k < i && a->count < 100; k++)
                if (strcmp(a->all[i].name, a->all[k].name) == 0) abort();
            if (a->all[i].line < 1) abort();
        }
        if (dl_megatron_plan(&run) == DL_OK) {
            if (words.option_count < 1 || dl_text_string(&workload)[0] == '\0') abort();
        } else if (err.message[0] == '\0') {
            abort();
        }
        static struct dl_arena kept;
        static const char *const directories[] = {"data"};
        static const struct dl_argument_class *own, *common;
        const struct dl_data catalog = {.directories = directories, .directory_count = 1};
        if (own == NULL &&
            dl_argument_classes_read(&catalog, "megatron", &kept, &own, &common, &err) != DL_OK)
            abort();
        if (dl_arguments_sort(&run.arguments, own, common, true, &lists, &err) != DL_OK) abort();
    } else if (err.code == DL_OK || err.message[0] == '\0') {
        abort();
    }
    dl_arena_free(&arena);
    return 0;
}
