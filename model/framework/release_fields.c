/* release_fields.c - the member `releases` of data/frameworks/NAME.json. */
#include "model/framework/framework.h"

#define RELEASE(member) .key = #member, .offset = offsetof(struct dl_framework_release, member)
#define RELEASE_COUNT(member) .count_offset = offsetof(struct dl_framework_release, member)
static const struct dl_field release_fields[] = {
    {RELEASE(name), .type = DL_FIELD_STRING, .required = true, .help = "name, as in --release"},
    {RELEASE(source), .type = DL_FIELD_STRING, .required = true,
     .help = "key of SOURCES.md for its constants"},
    {RELEASE(versions), RELEASE_COUNT(version_count), .type = DL_FIELD_STRINGS, .required = true,
     .help = "values of framework_version that it covers; 20.03 covers 20.03-py3 as well"},
    {RELEASE(where), RELEASE_COUNT(where_count), .type = DL_FIELD_MAP,
     .help =
         "column of a run (workload, layout, strategy, compiler, precision) -> value, or several "
         "separated by commas; the "
         "release covers only the matching runs of these versions"},
    {RELEASE(from), .type = DL_FIELD_STRING, .required = true,
     .help = "release of this file whose members it inherits; base: the members of the file"},
    {RELEASE(set), RELEASE_COUNT(set_count), .type = DL_FIELD_MAP,
     .help = "member of the framework -> its value, where that is not inherited"},
    {RELEASE(workloads), RELEASE_COUNT(workload_count), .type = DL_FIELD_MAP,
     .help = "network -> how this release builds it, e.g. mobilenet_v2:transposed=1; others are "
             "inherited"},
    {.key = NULL},
};
const struct dl_schema dl_framework_release_schema = {
    .name = "release",
    .summary = "constants of one release",
    .size = sizeof(struct dl_framework_release),
    .fields = release_fields,
};
