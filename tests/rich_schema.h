/* rich_schema.h - a document type with every type of field, for the tests and fuzzers of json*.c.
 */
#ifndef TESTS_RICH_SCHEMA_H
#define TESTS_RICH_SCHEMA_H

#include "model/core/json.h"

struct rich_item {
    const char *name;
    double alpha_s, beta_s_per_byte;
    double *points;
    int point_count;
};

struct rich_link {
    bool up;
    double latency_s, bandwidth_bytes_per_s;
};

struct rich {
    double ratio, size_bytes, limited, fallback_s;
    int64_t count, fallback_count;
    bool flag, fallback_flag;
    const char *title;
    int color, fallback_color;
    const char *shape;
    struct rich_link intra, inter;
    bool has_intra;
    struct rich_item *items;
    int item_count;
    double *numbers;
    int number_count;
    const char **shapes;
    int shape_count;
    const char **words;
    int word_count;
    struct dl_map_entry *facts;
    int fact_count;
    double twin_s, twin_bytes;
};

static const char *const rich_colors[] = {"red", "green", "blue", NULL};
static const char *const rich_former_colors[] = {NULL, "verdant", NULL};

#define RICH(member) offsetof(struct rich, member)

static const struct dl_field rich_item_fields[] = {
    {.key = "name",
     .type = DL_FIELD_STRING,
     .offset = offsetof(struct rich_item, name),
     .required = true,
     .help = "name of the item"},
    {.key = "alpha_s",
     .type = DL_FIELD_NUMBER,
     .offset = offsetof(struct rich_item, alpha_s),
     .min = 0,
     .max = 1,
     .unit = DL_UNIT_S,
     .help = "start-up time"},
    {.key = "beta_s_per_byte",
     .type = DL_FIELD_NUMBER,
     .offset = offsetof(struct rich_item, beta_s_per_byte),
     .min = 1e-15,
     .max = 1e-3,
     .unit = DL_UNIT_S_PER_BYTE,
     .help = "time per byte"},
    {.key = "points",
     .type = DL_FIELD_NUMBERS,
     .offset = offsetof(struct rich_item, points),
     .count_offset = offsetof(struct rich_item, point_count),
     .help = "samples"},
    {.type = DL_FIELD_END},
};
static const struct dl_schema rich_item_schema = {.name = "item",
                                                  .summary = "one item",
                                                  .size = sizeof(struct rich_item),
                                                  .fields = rich_item_fields};

static const struct dl_field rich_link_fields[] = {
    {.key = "latency_s",
     .alias = "lag_s",
     .type = DL_FIELD_NUMBER,
     .offset = offsetof(struct rich_link, latency_s),
     .unit = DL_UNIT_S,
     .min = 0,
     .max = 10,
     .help = "latency"},
    {.key = "bandwidth_bytes_per_s",
     .type = DL_FIELD_NUMBER,
     .required = true,
     .offset = offsetof(struct rich_link, bandwidth_bytes_per_s),
     .unit = DL_UNIT_BYTE_PER_S,
     .min = 1,
     .max = 1e15,
     .help = "bandwidth of one direction"},
    {.key = "up",
     .type = DL_FIELD_BOOL,
     .offset = offsetof(struct rich_link, up),
     .help = "in use"},
    {.type = DL_FIELD_END},
};
static const struct dl_schema rich_link_schema = {.name = "link",
                                                  .summary = "one link",
                                                  .size = sizeof(struct rich_link),
                                                  .fields = rich_link_fields};

/* "links" has no struct of its own: its members lie in struct rich. */
static const struct dl_field rich_links_fields[] = {
    {.key = "intra",
     .type = DL_FIELD_OBJECT,
     .offset = RICH(intra),
     .count_offset = RICH(has_intra),
     .child = &rich_link_schema,
     .help = "inside a node"},
    {.key = "inter",
     .type = DL_FIELD_OBJECT,
     .offset = RICH(inter),
     .child = &rich_link_schema,
     .help = "between nodes"},
    {.type = DL_FIELD_END},
};
static const struct dl_schema rich_links_schema = {
    .name = "links", .summary = "links", .size = sizeof(struct rich), .fields = rich_links_fields};

static const struct dl_field rich_fields[] = {
    {.key = "ratio", .type = DL_FIELD_NUMBER, .offset = RICH(ratio), .help = "any finite number"},
    {.key = "size_bytes",
     .type = DL_FIELD_NUMBER,
     .offset = RICH(size_bytes),
     .min = 0,
     .max = 1e18,
     .unit = DL_UNIT_BYTE,
     .help = "a size"},
    {.key = "limited",
     .type = DL_FIELD_NUMBER,
     .offset = RICH(limited),
     .min = -1,
     .max = 1,
     .help = "in [-1, 1]"},
    {.key = "fallback_s",
     .type = DL_FIELD_NUMBER,
     .offset = RICH(fallback_s),
     .has_fallback = true,
     .fallback = 0.25,
     .unit = DL_UNIT_S,
     .help = "0.25 when absent"},
    {.key = "count",
     .type = DL_FIELD_INTEGER,
     .offset = RICH(count),
     .min = 1,
     .max = 1e9,
     .help = "a count"},
    {.key = "fallback_count",
     .type = DL_FIELD_INTEGER,
     .offset = RICH(fallback_count),
     .has_fallback = true,
     .fallback = 7,
     .help = "7 when absent"},
    {.key = "flag", .type = DL_FIELD_BOOL, .offset = RICH(flag), .help = "a flag"},
    {.key = "fallback_flag",
     .type = DL_FIELD_BOOL,
     .offset = RICH(fallback_flag),
     .has_fallback = true,
     .fallback = 1,
     .help = "true when absent"},
    {.key = "title",
     .type = DL_FIELD_STRING,
     .offset = RICH(title),
     .required = true,
     .help = "what it is called"},
    {.key = "color",
     .type = DL_FIELD_CHOICE,
     .offset = RICH(color),
     .choices = rich_colors,
     .choice_aliases = rich_former_colors,
     .help = "a colour"},
    {.key = "fallback_color",
     .type = DL_FIELD_CHOICE,
     .offset = RICH(fallback_color),
     .choices = rich_colors,
     .has_fallback = true,
     .fallback = 2,
     .help = "blue when absent"},
    {.key = "shape", .type = DL_FIELD_EXPR, .offset = RICH(shape), .help = "a number or 4*hidden"},
    {.key = "links",
     .type = DL_FIELD_OBJECT,
     .offset = 0,
     .child = &rich_links_schema,
     .help = "links"},
    {.key = "items",
     .type = DL_FIELD_LIST,
     .offset = RICH(items),
     .count_offset = RICH(item_count),
     .child = &rich_item_schema,
     .help = "items"},
    {.key = "numbers",
     .type = DL_FIELD_NUMBERS,
     .offset = RICH(numbers),
     .count_offset = RICH(number_count),
     .min = -1e6,
     .max = 1e6,
     .help = "numbers"},
    {.key = "shapes",
     .type = DL_FIELD_EXPRS,
     .offset = RICH(shapes),
     .count_offset = RICH(shape_count),
     .help = "expressions"},
    {.key = "words",
     .type = DL_FIELD_STRINGS,
     .offset = RICH(words),
     .count_offset = RICH(word_count),
     .help = "strings"},
    {.key = "facts",
     .type = DL_FIELD_MAP,
     .offset = RICH(facts),
     .count_offset = RICH(fact_count),
     .help = "anything"},
    {.key = "twin_s",
     .type = DL_FIELD_NUMBER,
     .offset = RICH(twin_s),
     .unit = DL_UNIT_S,
     .help = "one twin"},
    {.key = "twin_bytes",
     .type = DL_FIELD_NUMBER,
     .offset = RICH(twin_bytes),
     .unit = DL_UNIT_BYTE,
     .help = "the other twin"},
    {.type = DL_FIELD_END},
};
static const struct dl_schema rich_schema = {.name = "dlmodel-rich",
                                             .summary = "every type of field",
                                             .size = sizeof(struct rich),
                                             .fields = rich_fields,
                                             .top_level = true};

#endif
