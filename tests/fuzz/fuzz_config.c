/* fuzz_config.c - libFuzzer entry for configs of Hugging Face: what is accepted has the parameters
 * that its family needs, each once, and makes the text of a workload. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "import/import_config.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_JSON()

static void demand(bool truth) {
    if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    for (int skip = 0; skip < 2; skip++) {
        struct dl_err err = {.code = DL_OK};
        struct dl_config_model model;
        if (dl_config_parse("input", (const char *)data, size, skip == 1, &arena, &model, &err) !=
            DL_OK) {
            demand(err.code != DL_OK && err.message[0] != '\0');
            continue;
        }
        demand(model.value_count > 0 && model.value_count <= DL_CONFIG_VALUES);
        for (int i = 0; i < model.value_count; i++) {
            demand(model.values[i].parameter[0] != '\0' && model.values[i].text[0] != '\0');
            for (int k = 0; k < i; k++)
                demand(strcmp(model.values[i].parameter, model.values[k].parameter) != 0);
        }
        const char *text = dl_config_text(&model, "fuzz", &arena);
        struct dl_json *doc = NULL;
        demand(text != NULL);
        demand(dl_json_parse("text", text, strlen(text), &arena, &doc, &err) == DL_OK);
    }
    dl_arena_free(&arena);
    return 0;
}
