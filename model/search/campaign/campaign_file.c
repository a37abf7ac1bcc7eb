/* campaign_file.c - see the header. */
#include "model/search/campaign/campaign_file.h"

#include <stddef.h>

#define AT(type_, member) .key = #member, .offset = offsetof(type_, member)
#define WORD(member, need, text)                                                                   \
    { AT(struct dl_campaign_file, member), .type = DL_FIELD_STRING, .required = need, .help = text }
#define COUNT(type_, member, text)                                                                 \
    {                                                                                              \
        AT(type_, member), .type = DL_FIELD_INTEGER, .min = 1, .max = 1e9, .unit = DL_UNIT_COUNT,  \
                           .required = true, .help = text                                          \
    }

static const struct dl_field trial_fields[] = {
    COUNT(struct dl_campaign_trial, batch_per_device, "samples per device and iteration"),
    {AT(struct dl_campaign_trial, parameters),
     .count_offset = offsetof(struct dl_campaign_trial, parameter_count), .type = DL_FIELD_MAP,
     .help = "hyper-parameter -> value, as the program takes it"},
    {.key = NULL},
};
static const struct dl_schema trial_schema = {.name = "trial",
                                              .summary = "one training of a campaign",
                                              .size = sizeof(struct dl_campaign_trial),
                                              .fields = trial_fields};

static const struct dl_field fields[] = {
    WORD(workload, true, "network that every trial trains"),
    WORD(framework, true, "framework of the trials"),
    WORD(precision, true, "arithmetic precision"),
    WORD(optimizer, true, "optimizer"),
    WORD(input, false, "input size if not that of the workload: 64x64, seq128"),
    COUNT(struct dl_campaign_file, steps, "iterations of a trial"),
    COUNT(struct dl_campaign_file, devices_per_trial, "devices that a trial trains on"),
    {AT(struct dl_campaign_file, trials),
     .count_offset = offsetof(struct dl_campaign_file, trial_count), .type = DL_FIELD_LIST,
     .child = &trial_schema, .required = true,
     .help = "the trials, in the order in which they start"},
    {.key = NULL},
};

const struct dl_schema dl_campaign_schema = {.name = "dlmodel-campaign",
                                             .summary = "trials of a hyper-parameter search",
                                             .size = sizeof(struct dl_campaign_file),
                                             .fields = fields,
                                             .top_level = true};

enum dl_code dl_campaign_read(const char *path, struct dl_arena *arena,
                              struct dl_campaign_file *out, struct dl_err *err) {
    struct dl_json *doc = NULL;
    DL_TRY(dl_json_read(path, arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_campaign_schema, arena, out, err));
    if (out->trial_count < 1)
        return dl_json_fail(doc, "trials", err, "expected at least one trial");
    return DL_OK;
}
