/* fuzz_keras.c - libFuzzer entry for models of Keras: the JSON, or the archive around it. What is
 * accepted loads as JSON; whether it is a workload is for the loader to say. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "import/import_keras.h"
#include "import/zip.h"
#include "model/workload/workload.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_BY_PIECES(":,[]{}\"")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_keras *k = dl_arena_alloc(&arena, 1, sizeof *k);
    char *json = dl_arena_strndup(&arena, (const char *)data, size);
    size_t length = strlen(json);
    const char *text;

    if (size > 4 && memcmp(data, "PK", 2) == 0 &&
        (dl_zip_file(&(struct dl_zip){"input", data, size}, "config.json", 1 << 20, &arena, &json,
                     &length, &err) != DL_OK ||
         json == NULL)) {
        dl_arena_free(&arena);
        return 0;
    }
    if (dl_keras_text(&(struct dl_keras_source){"input", json, length, NULL}, &arena, k, &text,
                      &err) == DL_OK) {
        struct dl_json *made;
        struct dl_workload workload;
        if (dl_json_parse("made", text, strlen(text), &arena, &made, &err) != DL_OK) abort();
        const struct dl_json *const documents[] = {made};
        if (dl_workload_build(documents, 1, NULL, 0, &arena, &workload, &err) == DL_OK &&
            !(workload.parameters >= 0))
            abort();
    } else if (err.code == DL_OK || err.message[0] == '\0') {
        abort();
    }
    dl_arena_free(&arena);
    return 0;
}
