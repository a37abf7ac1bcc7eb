/* fuzz_python.c - libFuzzer entry for configurations in Python: what is accepted makes a plan, or
 * an error with a reason; nothing runs for long. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "import/run/imported_run.h"
#include "model/core/text.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_BY_PIECES("=: \n\"'(){}[],.*")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_text workload = {.arena = &arena}, text = {.arena = &arena};
    struct dl_plan_words words = {.arena = &arena, .kind = "torchtitan", .workload = &workload};
    struct dl_context context = {.arena = &arena};
    struct dl_run run = {
        .out = &words, .err = &err, .vocabulary = NAN, .nodes = NAN, .per_node = NAN, .ranks = 16};

    dl_text_add(&text, "import x\n");
    dl_text_add_bytes(&text, (const char *)data, size);
    const struct dl_run_source source = {.context = &context,
                                         .path = "models/llama3/input.py",
                                         .text = dl_text_string(&text),
                                         .length = size + 9,
                                         .alone = true};
    dl_arguments_start(&run.arguments, source.path, &arena);
    if (dl_run_read_torchtitan(&source, &run) == DL_OK) {
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
