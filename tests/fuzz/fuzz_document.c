/* fuzz_document.c - libFuzzer entry for every kind of document that the program loads: the first
 * byte chooses the kind, the rest is the document. What is loaded is written and read back the
 * same; a refusal says why, and where. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/run/cal_journal.h"
#include "model/core/json.h"
#include "model/search/campaign/campaign_file.h"
#include "model/framework/framework.h"
#include "model/framework/layer_times.h"
#include "model/machine/kernel_model.h"
#include "model/machine/system.h"
#include "predict/compare/constants.h"
#include "slurm/cluster/site.h"
#include "slurm/run/run_record.h"
#include "slurm/run/runlog.h"
#include "slurm/run/trial_log.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* NULL: a line of calibrate's journal */
static const struct dl_schema *const kinds[] = {&dl_system_schema,
                                                &dl_device_schema,
                                                &dl_framework_schema,
                                                &dl_kernel_model_set_schema,
                                                &dl_layer_times_schema,
                                                &dl_site_schema,
                                                &dl_run_schema,
                                                &dl_runlog_schema,
                                                NULL,
                                                &dl_campaign_schema,
                                                &dl_trial_schema,
                                                &dl_constants_schema};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void demand(bool truth) {
    if (!truth) abort();
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    if (size < 2 || seed % 64 == 0) return LLVMFuzzerMutate(data, size, max_size);
    return 1 + mutate_pieces(data + 1, size - 1, max_size - 1, seed, ",:{}[] \n");
}

/* Loading what was written gives the same text. */
static void judge(const struct dl_schema *kind, const void *object, struct dl_arena *arena) {
    struct dl_err err = {.code = DL_OK};
    struct dl_json *doc;
    void *again = dl_arena_alloc(arena, 1, kind->size);
    const char *text = dl_json_text(kind, object, arena);
    demand(text != NULL && again != NULL);
    demand(dl_json_parse("written", text, strlen(text), arena, &doc, &err) == DL_OK);
    demand(dl_json_load(doc, kind, arena, again, &err) == DL_OK);
    const char *twice = dl_json_text(kind, again, arena);
    demand(twice != NULL && strcmp(text, twice) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_json *doc;
    struct dl_cal_line line;
    if (size == 0) return 0;
    const char *text = (const char *)data + 1;
    const struct dl_schema *kind = kinds[data[0] % KINDS];
    if (kind == NULL) {
        if (dl_cal_line_parse("input", 1, text, size - 1, &arena, &line, &err) == DL_OK)
            demand(line.has_header + line.has_sample + line.has_fact + line.has_probe +
                       line.has_skipped ==
                   1);
        else
            demand(err.message[0] != 0);
    } else {
        void *object = dl_arena_alloc(&arena, 1, kind->size);
        demand(object != NULL);
        if (dl_json_parse("input", text, size - 1, &arena, &doc, &err) == DL_OK &&
            dl_json_load(doc, kind, &arena, object, &err) == DL_OK)
            judge(kind, object, &arena);
        else
            demand(err.code != DL_OK && err.message[0] != 0);
    }
    dl_arena_free(&arena);
    return 0;
}
